//! The configuration as written: values, each with its origin. Must never interpret a value.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Line(u64),
    Variable(String),
    Flag(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(serde_json::Value),
    List(Vec<Node>),
    /// In the order of the file.
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(super) fn text(text: &str, origin: Origin) -> Self {
        Self { value: Value::Scalar(text.into()), origin }
    }

    pub(super) fn empty_map(origin: Origin) -> Self {
        Self { value: Value::Map(Vec::new()), origin }
    }

    /// A key without a value counts as an empty map.
    pub(super) fn entries(&self) -> Option<&[(String, Self)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Scalar(serde_json::Value::Null) => Some(&[]),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries()?.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Removes the node at a path. Returns whether there was one.
    pub(super) fn remove(&mut self, path: &[&str]) -> bool {
        let (Some((first, rest)), Value::Map(entries)) = (path.split_first(), &mut self.value) else {
            return false;
        };
        let Some(at) = entries.iter().position(|(name, _)| name == first) else { return false };
        if rest.is_empty() {
            entries.remove(at);
            return true;
        }
        entries[at].1.remove(rest)
    }

    pub(super) fn without(&self, keys: &[&str]) -> Self {
        let mut node = self.clone();
        if let Value::Map(entries) = &mut node.value {
            entries.retain(|(name, _)| !keys.contains(&&**name));
        }
        node
    }

    /// Creates missing maps on the path, and replaces values that are not maps.
    pub(super) fn get_or_insert(&mut self, path: &[String], origin: &Origin) -> &mut Self {
        let Some((first, rest)) = path.split_first() else { return self };
        if !matches!(self.value, Value::Map(_)) {
            *self = Self::empty_map(origin.clone());
        }
        let Value::Map(entries) = &mut self.value else { unreachable!("it was made a map") };
        let index = entries.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            entries.push((first.clone(), Self::empty_map(origin.clone())));
            entries.len() - 1
        });
        entries[index].1.get_or_insert(rest, origin)
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar(scalar) => scalar.clone(),
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries.iter().map(|(name, it)| (name.clone(), it.to_json())).collect(),
        }
    }

    pub(super) fn origin_of<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> &Origin {
        let (mut node, mut path) = (self, path.into_iter());
        while let Some(inner) = path.next().and_then(|name| node.get(name)) {
            node = inner;
        }
        &node.origin
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { value, origin: Origin::Line(referenced.line()) })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

macro_rules! visit_scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<Value, E> {
            Ok(Value::Scalar(value.into()))
        })*
    };
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    visit_scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Scalar(serde_json::Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = seq.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
