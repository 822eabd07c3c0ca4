//! Lists that the server answers page by page.

use serde::de::DeserializeOwned;

/// A page of a list: its items, and the `after` parameter that requests the next page.
pub trait Page: DeserializeOwned {
    /// The type of the items.
    type Item;

    /// The items, and the `after` parameter of the next page; `None` on the last page.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);

    /// As of when the items are, for a list of what a reconciliation found.
    fn reconciled_at(&self) -> Option<&str> {
        None
    }
}

/// Declares a page type: its name, the field that holds the items, and the type of the items.
macro_rules! page {
    ($(#[$about:meta])* $page:ident { $(#[$about_items:meta])* $items:ident: $item:ident }) => {
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        $(#[$about])*
        pub struct $page {
            $(#[$about_items])*
            pub $items: Vec<$item>,
            /// The `after` parameter of the next page; absent on the last page.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub after: Option<String>,
        }

        impl $crate::Page for $page {
            type Item = $item;

            fn into_parts(self) -> (Vec<$item>, Option<String>) {
                (self.$items, self.after)
            }
        }
    };
}

pub(crate) use page;
