//! How a database is opened as a store, by a node of its own, and how its schema is created.

use std::sync::Arc;

use bates_connect::Address;
use bates_core::MoveMark;
use uuid::Uuid;

use crate::PostgresStore;
use crate::audit::Recorder;
use crate::batch::Shared;
use crate::connect::Settings;
use crate::error::{Failed, OpenError};
use crate::lineage::Lineage;
use crate::node::{self, Process};
use crate::notice::Notices;
use crate::recall::Recalls;
use crate::retry::retried;
use crate::session::Session;
use crate::{cluster, connect, schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// A store that is there is opened; a database without one is refused.
    Existing,
    /// Makes the store if it is missing; else opens it as it is.
    New,
    /// As [`Opening::Existing`], but also if it has stopped issuing: for a repair.
    Stopped,
}

impl PostgresStore {
    /// Opens the store as a new node.
    pub async fn open(address: &Address, settings: Settings, opening: OpenMode) -> Result<Self, OpenError> {
        let pool = connect::pool(address, settings)?;
        let truth = Lineage::new(Uuid::now_v7());
        let process = Process::current();
        let opened = retried(settings.patience, || async {
            let session = Session::take(&pool, settings).await?;
            connect::check_server(&session).await?;
            prepare(&session, address, opening).await?;
            let learned = match truth.learn(&session).await {
                Ok(()) => cluster::check(&session).await,
                refused => refused,
            };
            match learned {
                Err(Failed::Refused(OpenError::Stopped(_))) if opening == OpenMode::Stopped => {}
                learned => learned?,
            }
            node::be_seen(&session, truth.node, &process).await?;
            let rows = session.query("SELECT id FROM bates.store", &[]).await?;
            let identity = rows.first().map(|row| row.get::<_, Uuid>(0));
            session.give_back();
            identity.ok_or(Failed::Refused(OpenError::Emptied))
        });
        let identity = opened.await.map_err(|failed| failed.into_open_error(address))?;
        let notices = Notices::new(address, settings, truth.node)?;
        let recalls = Recalls::default();
        recalls.begin(truth.last_recall());
        let shared = Arc::new(Shared::new(pool, settings, truth));
        Ok(Self { shared, notices, recorder: Recorder::default(), process, recalls, identity })
    }

    /// Creates the schema if it is missing. Answers whether it was.
    pub async fn migrate(address: &Address, settings: Settings) -> Result<bool, OpenError> {
        Self::create(address, settings, None).await
    }

    /// Opens the store that a move fills. A new one has the mark from the beginning, so it is never served too early.
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
        let created = retried(settings.patience, || async {
            let session = Session::take(&pool, settings).await?;
            connect::check_server(&session).await?;
            let is_new = schema::is_missing(&session).await? && schema::create(&session, mark).await?;
            session.give_back();
            Ok(is_new)
        });
        created.await.map_err(|failed| failed.into_open_error(address))
    }

    pub async fn is_missing(address: &Address, settings: Settings) -> Result<bool, OpenError> {
        let pool = connect::pool(address, settings)?;
        let asked = retried(settings.patience, || async {
            let session = Session::take(&pool, settings).await?;
            let is_missing = schema::is_missing(&session).await?;
            session.give_back();
            Ok(is_missing)
        });
        asked.await.map_err(|failed| failed.into_open_error(address))
    }
}

async fn prepare(session: &Session, address: &Address, opening: OpenMode) -> Result<(), Failed> {
    if !schema::is_missing(session).await? {
        return Ok(());
    }
    if opening != OpenMode::New {
        return Err(Failed::Refused(OpenError::NoStore(address.to_string().into())));
    }
    schema::create(session, None).await.map(drop)
}
