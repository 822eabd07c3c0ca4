//! Parameters of statements. Each has an explicit type, because statements are not prepared behind PgBouncer.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

pub(crate) trait Parameter: ToSql + Sync {
    fn kind(&self) -> Type;
}

pub(crate) trait Typed {
    const TYPE: Type;
    const ARRAY: Type;
}

macro_rules! typed {
    ($($rust:ty: $type:ident, $array:ident;)*) => {
        $(impl Typed for $rust {
            const TYPE: Type = Type::$type;
            const ARRAY: Type = Type::$array;
        })*
    };
}

typed! {
    bool: BOOL, BOOL_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    f64: FLOAT8, FLOAT8_ARRAY;
    Uuid: UUID, UUID_ARRAY;
    str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Cow<'_, str>: TEXT, TEXT_ARRAY;
    Box<str>: TEXT, TEXT_ARRAY;
    [u8]: BYTEA, BYTEA_ARRAY;
}

impl<T: Typed + ?Sized> Typed for &T {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Typed + ToSql + Sync> Parameter for T {
    fn kind(&self) -> Type {
        T::TYPE
    }
}

impl<T: Typed + ToSql + Sync> Parameter for Vec<T> {
    fn kind(&self) -> Type {
        T::ARRAY
    }
}

impl<T: Typed + ToSql + Sync> Parameter for &[T] {
    fn kind(&self) -> Type {
        T::ARRAY
    }
}
