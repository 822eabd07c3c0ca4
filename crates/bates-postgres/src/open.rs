//! Opens a database as a store, as a new node, and creates its schema.

use std::sync::Arc;

use bates_connect::Address;
use bates_core::MoveMark;
use uuid::Uuid;

use crate::PostgresStore;
use crate::audit::Recorder;
use crate::batch::Shared;
use crate::connect::Settings;
use crate::error::{Failure, OpenError};
use crate::lineage::Lineage;
use crate::node::{self, Process};
use crate::notice::Notices;
use crate::recall::Recalls;
use crate::schema::Found;
use crate::session::{Session, with_session};
use crate::{cluster, connect, schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Opens an existing store; refuses a database without one.
    Existing,
    /// Creates the store if it is missing.
    New,
    /// Like [`OpenMode::Existing`], but also opens a store that has stopped issuing, for a repair.
    Stopped,
}

impl PostgresStore {
    /// Opens the store as a new node.
    pub async fn open(address: &Address, settings: Settings, mode: OpenMode) -> Result<Self, OpenError> {
        let pool = connect::pool(address, settings)?;
        let lineage = Lineage::new(Uuid::now_v7());
        let process = Process::current();
        let (known, own) = (&lineage, &process);
        let opened = with_session(&pool, settings, |session| async move {
            connect::check_server(&session).await?;
            prepare(&session, address, mode).await?;
            let checked = match known.load(&session).await {
                Ok(()) => cluster::check(&session).await,
                refused => refused,
            };
            match checked {
                Err(Failure::Refused(OpenError::Stopped(_))) if mode == OpenMode::Stopped => {}
                checked => checked?,
            }
            node::record_contact(&session, known.node, own).await?;
            let rows = session.query("SELECT id FROM bates.store", &[]).await?;
            let identity = rows.first().map(|row| row.get::<_, Uuid>(0));
            identity.ok_or(Failure::Refused(OpenError::Emptied))
        });
        let identity = opened.await.map_err(|failure| failure.into_open_error(address))?;
        let notices = Notices::new(address, settings, lineage.node)?;
        let recalls = Recalls::default();
        recalls.begin(lineage.last_recall());
        let shared = Arc::new(Shared::new(pool, settings, lineage));
        Ok(Self { shared, notices, recorder: Recorder::default(), process, recalls, identity })
    }

    /// Creates the schema if it is missing, or migrates it. Returns whether anything was missing.
    pub async fn migrate(address: &Address, settings: Settings) -> Result<bool, OpenError> {
        Self::create(address, settings, None).await
    }

    /// Opens the store that a move fills. A new store is created with the mark, so it is never served too early.
    pub async fn open_arriving(
        address: &Address,
        settings: Settings,
        mark: &MoveMark,
    ) -> Result<Self, OpenError> {
        Self::create(address, settings, Some(mark)).await?;
        Self::open(address, settings, OpenMode::Stopped).await
    }

    async fn create(
        address: &Address,
        settings: Settings,
        mark: Option<&MoveMark>,
    ) -> Result<bool, OpenError> {
        let pool = connect::pool(address, settings)?;
        let created = with_session(&pool, settings, |session| async move {
            connect::check_server(&session).await?;
            let is_current = schema::find(&session).await? == Found::Current;
            Ok(!is_current && schema::create_or_migrate(&session, mark).await? != Found::Current)
        });
        created.await.map_err(|failure| failure.into_open_error(address))
    }

    /// The SQL that creates or migrates the schema; empty if it is current.
    pub async fn plan(address: &Address, settings: Settings) -> Result<String, OpenError> {
        let pool = connect::pool(address, settings)?;
        with_session(&pool, settings, |session| async move { Ok(schema::find(&session).await?.plan()) })
            .await
            .map_err(|failure| failure.into_open_error(address))
    }
}

/// Creates the schema if the mode allows it, or migrates it.
async fn prepare(session: &Session, address: &Address, mode: OpenMode) -> Result<(), Failure> {
    match schema::find(session).await? {
        Found::Current => Ok(()),
        Found::Nothing if mode != OpenMode::New => {
            Err(Failure::Refused(OpenError::NoStore(address.to_string().into())))
        }
        _ => schema::create_or_migrate(session, None).await.map(drop),
    }
}
