//! Lists that are answered page by page.

use serde::de::DeserializeOwned;

/// A page of a list: some items, and what to give as `after` to see those behind them.
pub trait Page: DeserializeOwned {
    /// What is listed.
    type Item;

    /// The items, and the `after` of the next page; the last page has none.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// Declares a page: its name, its items, and the field that holds them.
macro_rules! page {
    ($(#[$about:meta])* $page:ident { $(#[$about_items:meta])* $items:ident: $item:ident }) => {
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        $(#[$about])*
        pub struct $page {
            $(#[$about_items])*
            pub $items: Vec<$item>,
            /// Give this as `after` to see those behind them; missing on the last page.
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
