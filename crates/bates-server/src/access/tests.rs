//! Claims about secrets: only the right one is accepted, and callers that it admitted end with it.

use super::*;

fn peer() -> Caller {
    Caller::from_address(Some("10.0.0.7:4711".parse().expect("an address")))
}

#[test]
fn only_the_exact_secret_is_accepted() {
    let access = Access::new(Some("open sesame"));
    assert!(!access.is_open());
    let caller = access.authenticate(b"open sesame", &peer()).expect("the right secret");
    assert_eq!((caller.name(), caller.token()), (peer().name(), None));
    assert_eq!(caller.permissions(), &Permissions::all());
    for wrong in [&b""[..], b"open", b"open sesame ", b"Open sesame", b"open sesamf", b"\xff"] {
        assert!(access.authenticate(wrong, &peer()).is_none(), "{}", wrong.escape_ascii());
    }
}

#[test]
fn a_token_has_its_name_and_other_callers_their_address() {
    let access = Access::new(Some("shared")).with_token("registry", "one", Permissions::all()).with_token(
        "clinic",
        "two",
        Permissions::all(),
    );
    let name_and_owner = |secret: &[u8]| {
        let caller = access.authenticate(secret, &peer())?;
        Some((caller.name().to_owned(), caller.key_owner().to_owned()))
    };
    let pair = |name: &str, owner: &str| Some((name.to_owned(), owner.to_owned()));
    assert_eq!(name_and_owner(b"one"), pair("registry", "registry"));
    assert_eq!(name_and_owner(b"two"), pair("clinic", "clinic"));
    assert_eq!(name_and_owner(b"shared"), pair("10.0.0.7", ""));
    assert_eq!((name_and_owner(b"registry"), name_and_owner(b"")), (None, None));
    assert!(!Access::new(None).with_token("registry", "one", Permissions::all()).is_open());
}

#[test]
fn without_a_secret_every_caller_is_accepted() {
    let access = Access::new(None);
    assert!(access.is_open());
    assert!([&b""[..], b"anything"].iter().all(|secret| access.authenticate(secret, &peer()).is_some()));
}

#[test]
fn an_ipv4_mapped_address_is_shown_as_ipv4() {
    let mapped = Caller::from_address(Some("[::ffff:10.0.0.7]:4711".parse().expect("an address")));
    assert_eq!((mapped.name(), Caller::from_address(None).name()), ("10.0.0.7", "unknown"));
}

#[test]
fn debug_output_has_neither_secret_nor_digest() {
    let access = Access::new(Some("open sesame")).with_token("registry", "hush", Permissions::all());
    assert_eq!(format!("{access:?}"), "Access(guarded)");
}

fn stored(name: &str, digest_of: &str) -> CallerToken {
    CallerToken {
        name: name.into(),
        grant: r#"{"may":["take"],"rate":100}"#.into(),
        digest: digest(digest_of.as_bytes()),
        previous: None,
        created: Timestamp::UNIX_EPOCH,
        expires: None,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_token_of_the_store_is_accepted_until_it_is_revoked_and_then_its_callers_end() {
    let access = Access::new(Some("shared"));
    let acme = stored("acme", "one");
    assert!(access.apply_tokens(|| [acme.clone()].into(), at(0)).is_empty());
    let caller = access.authenticate(b"one", &peer()).expect("a token of the store");
    assert_eq!(caller.token(), Some("acme"));
    // The same tokens again: callers that were admitted go on.
    access.apply_tokens(|| [acme, stored("mail", "two")].into(), at(1));
    assert!(!caller.has_ended());
    access.apply_tokens(|| [stored("mail", "two")].into(), at(2));
    assert!(caller.has_ended() && access.authenticate(b"one", &peer()).is_none());
    assert!(access.authenticate(b"two", &peer()).is_some());
}

#[test]
fn a_rotation_accepts_both_secrets_and_shares_the_rate() {
    let access = Access::new(Some("shared"));
    let acme = stored("acme", "one");
    access.apply_tokens(|| [acme.clone()].into(), at(0));
    let first = access.authenticate(b"one", &peer()).expect("the first secret");
    let rotated = acme.rotated(digest(b"two"), at(10), std::time::Duration::from_secs(5));
    access.apply_tokens(|| [rotated.clone()].into(), at(10));
    let second = access.authenticate(b"two", &peer()).expect("the second secret");
    assert!(access.authenticate(b"one", &peer()).is_some() && !first.has_ended());
    let allowances = [&first, &second].map(|caller| caller.grant.allowance.clone().expect("a rate"));
    assert!(Arc::ptr_eq(&allowances[0], &allowances[1]), "two secrets would give twice the rate");
    access.apply_tokens(|| [rotated].into(), at(15));
    assert!(first.has_ended() && !second.has_ended());
    assert!(access.authenticate(b"one", &peer()).is_none());
}

#[test]
fn an_expired_token_and_changed_rights_end_the_callers_of_before() {
    let access = Access::new(Some("shared"));
    let expiring = CallerToken { expires: Some(at(5)), ..stored("acme", "one") };
    access.apply_tokens(|| [expiring.clone(), stored("mail", "two")].into(), at(4));
    let [acme, mail] = [&b"one"[..], b"two"].map(|secret| access.authenticate(secret, &peer()).unwrap());
    let changed = CallerToken { grant: r#"{"may":["read"]}"#.into(), ..stored("mail", "two") };
    access.apply_tokens(|| [expiring, changed].into(), at(5));
    assert!(acme.has_ended() && mail.has_ended());
    assert!(access.authenticate(b"one", &peer()).is_none());
    let mail = access.authenticate(b"two", &peer()).expect("the token goes on");
    assert!(mail.permissions().has(Right::Read) && !mail.permissions().has(Right::Take));
}

#[test]
fn a_token_of_the_configuration_counts_before_one_of_the_store() {
    let access = Access::new(None).with_token("acme", "file", Permissions::all());
    let unreadable = CallerToken { grant: "{}".into(), ..stored("odd", "three") };
    let problems = access.apply_tokens(|| [stored("acme", "one"), unreadable].into(), at(0));
    assert_eq!(problems, ["odd".into()]);
    assert!(access.authenticate(b"one", &peer()).is_none());
    assert!(access.authenticate(b"three", &peer()).is_none());
    assert!(access.authenticate(b"file", &peer()).is_some());
}

#[test]
fn tokens_of_the_store_do_not_close_a_server_without_secrets() {
    let access = Access::new(None);
    access.apply_tokens(|| [stored("acme", "one")].into(), at(0));
    assert!(access.is_open() && access.authenticate(b"anything", &peer()).is_some());
}
