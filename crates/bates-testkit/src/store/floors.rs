//! Floors of series: scopes that do not exist yet begin no earlier.

use bates_core::{CursorStore as _, GrantPurpose, GrantRequest, SeriesStore as _};

use super::exercise::{DataSet, grant, open_pinned, range, request, scope_id, series};

pub async fn the_floor_of_a_series_holds_for_scopes_that_do_not_exist_yet<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    assert_eq!(store.series_floors().await, Ok(Vec::new()));
    assert_eq!(grant(&store, request(scope_id("old"), 4)).await.range, range(1001, 1005));
    for floor in [1100, 1050] {
        store.raise_series_floor(series("document"), floor).await.expect("the series exists");
    }
    assert!(store.raise_series_floor(series("nope"), 5).await.is_err());
    drop(store);
    let store = data.open().await;
    assert_eq!(store.series_floors().await, Ok(vec![(series("document"), 1100)]), "it only rises");
    assert_eq!(grant(&store, request(scope_id("old"), 1)).await.range, range(1005, 1006));
    assert_eq!(grant(&store, request(scope_id("new"), 2)).await.range, range(1100, 1102));
    let issue = GrantRequest { purpose: GrantPurpose::Issue, ..request(scope_id("issued"), 1) };
    assert_eq!(grant(&store, issue).await.range, range(1100, 1101));
    assert_eq!(store.raise_floor(scope_id("raised"), 1001, None).await.map(|cursor| cursor.next), Ok(1100));
    let totals = store.totals().await.expect("a read");
    assert_eq!((totals.scopes, totals.granted), (4, Some(5 + 101 + 100 + 99)));
}
