//! The names in a client certificate. Must never read a certificate that is not verified yet.

use std::net::IpAddr;

use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::CN;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Alternative names (DNS, URI, e-mail, IP), then common names, as texts. Empty if it cannot be read.
pub(super) fn certificate_names(certificate: &[u8]) -> Vec<Box<str>> {
    let Ok(certificate) = Certificate::from_der(certificate) else { return Vec::new() };
    let certificate = certificate.tbs_certificate;
    let alternative = match certificate.get::<SubjectAltName>() {
        Ok(names) => names.map(|(_, SubjectAltName(names))| names).unwrap_or_default(),
        Err(_) => return Vec::new(),
    };
    let attributes = certificate.subject.0.iter().flat_map(|relative| relative.0.iter());
    alternative.iter().filter_map(text).chain(attributes.filter_map(common_name)).collect()
}

fn text(name: &GeneralName) -> Option<Box<str>> {
    match name {
        GeneralName::DnsName(name)
        | GeneralName::Rfc822Name(name)
        | GeneralName::UniformResourceIdentifier(name) => Some(name.as_str().into()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()?;
            Some(address.to_string().into())
        }
        _ => None,
    }
}

fn common_name(attribute: &AttributeTypeAndValue) -> Option<Box<str>> {
    if attribute.oid != CN {
        return None;
    }
    let utf8 = attribute.value.decode_as::<Utf8StringRef<'_>>().map(|name| name.as_str().into());
    let printable = || attribute.value.decode_as::<PrintableStringRef<'_>>().map(|name| name.as_str().into());
    utf8.or_else(|_| printable()).ok()
}
