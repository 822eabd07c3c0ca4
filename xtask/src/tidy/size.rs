//! Measures files and functions, without tests. Owns the limits. Must never grant exceptions; the ratchet does.

use proc_macro2::Span;
use syn::{Attribute, Block, Signature, visit::Visit};

use super::{finding::Finding, tree::Source};

/// The style asks for around 300 lines per file and around 30 per function; these are the hard limits.
const FILE_LINES_MAX: usize = 300;
const FN_LINES_MAX: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Fn,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::File, Self::Fn];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Fn => "fn",
        }
    }

    pub(super) fn lines_max(self) -> usize {
        match self {
            Self::File => FILE_LINES_MAX,
            Self::Fn => FN_LINES_MAX,
        }
    }
}

/// The size of one file, or of one function named `path::Type::function`.
#[derive(Debug)]
pub(super) struct Size {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Measures every file that is not a test; a file that cannot be parsed is a finding.
pub(super) fn measure_all(sources: &[Source]) -> (Vec<Size>, Vec<Finding>) {
    let (mut sizes, mut unreadable) = (Vec::new(), Vec::new());
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        match measure(source) {
            Ok(measured) => sizes.extend(measured),
            Err(error) => {
                let line = error.span().start().line;
                unreadable.push(Finding::new(&source.path, line, format!("cannot be parsed: {error}")));
            }
        }
    }
    (sizes, unreadable)
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
}

fn measure(source: &Source) -> syn::Result<Vec<Size>> {
    let mut ruler = Ruler { path: &source.path, within: Vec::new(), sizes: Vec::new(), test_lines: 0 };
    ruler.visit_file(&syn::parse_file(&source.text)?);
    let lines = source.text.lines().count() - ruler.test_lines;
    let (name, path) = (source.path.clone(), source.path.clone());
    ruler.sizes.push(Size { kind: Kind::File, name, path, line: 1, lines });
    Ok(ruler.sizes)
}

struct Ruler<'a> {
    path: &'a str,
    /// The modules, types and functions around the visited item.
    within: Vec<String>,
    sizes: Vec<Size>,
    test_lines: usize,
}

impl Ruler<'_> {
    fn enter(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.within.push(name);
        visit(self);
        self.within.pop();
    }

    /// From `fn` to the closing brace: attributes and documentation do not make a function long.
    fn function(&mut self, signature: &Signature, body: &Block, visit: impl FnOnce(&mut Self)) {
        let lines = lines_between(signature.fn_token.span, body.brace_token.span.close());
        let line = signature.fn_token.span.start().line;
        self.enter(signature.ident.to_string(), |ruler| {
            let name = format!("{}::{}", ruler.path, ruler.within.join("::"));
            ruler.sizes.push(Size { kind: Kind::Fn, name, path: ruler.path.to_owned(), line, lines });
            visit(ruler);
        });
    }
}

impl<'ast> Visit<'ast> for Ruler<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        match (&module.content, module.attrs.iter().find(|attribute| is_cfg_test(attribute))) {
            (Some((brace, _)), Some(attribute)) => {
                self.test_lines += lines_between(attribute.pound_token.span, brace.span.close());
            }
            _ => self.enter(module.ident.to_string(), |ruler| syn::visit::visit_item_mod(ruler, module)),
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        self.enter(type_name(&block.self_ty), |ruler| syn::visit::visit_item_impl(ruler, block));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.enter(item.ident.to_string(), |ruler| syn::visit::visit_item_trait(ruler, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, |ruler| syn::visit::visit_item_fn(ruler, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, |ruler| syn::visit::visit_impl_item_fn(ruler, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body, |ruler| syn::visit::visit_trait_item_fn(ruler, item));
        }
    }
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
}

fn type_name(ty: &syn::Type) -> String {
    let syn::Type::Path(path) = ty else { return "_".to_owned() };
    path.path.segments.last().map_or_else(|| "_".to_owned(), |segment| segment.ident.to_string())
}

fn lines_between(first: Span, last: Span) -> usize {
    last.end().line - first.start().line + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<(String, usize)> {
        let (sizes, unreadable) = measure_all(&[Source::planted("a.rs", text)]);
        assert_eq!(unreadable, []);
        sizes.into_iter().map(|size| (size.name, size.lines)).collect()
    }

    fn named(name: &str, lines: usize) -> (String, usize) {
        (name.to_owned(), lines)
    }

    #[test]
    fn functions_are_measured_without_their_documentation() {
        let text = "//! A.\n/// Long\n/// story.\n#[inline]\npub fn a(\n    b: u8,\n) {\n    b;\n}\n";
        assert_eq!(sizes(text), [named("a.rs::a", 5), named("a.rs", 9)]);
    }

    #[test]
    fn methods_are_named_after_their_type() {
        let text = "impl Lease {\n fn split() {}\n}\nimpl<T> From<T> for m::Pool {\n fn from() {\n }\n}\n\
            trait Store { fn a(); fn b() {} }\n";
        let found = sizes(text);
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.rs::Lease::split", "a.rs::Pool::from", "a.rs::Store::b", "a.rs"]);
    }

    #[test]
    fn test_modules_do_not_count() {
        let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn long() {\n    }\n}\n";
        assert_eq!(sizes(text), [named("a.rs::a", 1), named("a.rs", 2)]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_not_subtracted() {
        assert_eq!(sizes("//! A.\n#[cfg(test)]\nmod tests;\nfn a() {}\n").last(), Some(&named("a.rs", 4)));
    }

    #[test]
    fn files_of_tests_and_benchmarks_are_not_measured() {
        for path in ["crates/a/tests/it/main.rs", "crates/a/benches/a.rs", "crates/a/src/lease/tests.rs"] {
            assert!(measure_all(&[Source::planted(path, "fn a() {}\n")]).0.is_empty());
        }
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_found() {
        let (_, unreadable) = measure_all(&[Source::planted("a.rs", "//! A.\nfn {\n")]);
        assert_eq!(unreadable.len(), 1);
    }
}
