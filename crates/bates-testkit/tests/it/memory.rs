//! The store in memory passes the conformance suite, for one process and for several.

use bates_testkit::{DataSet, MemoryStore, check_random_histories, conformance, exercise_move};

/// Each opening is another process on the same data.
struct InMemory(MemoryStore);

impl DataSet for InMemory {
    type Store = MemoryStore;

    async fn open(&self) -> Self::Store {
        self.0.node()
    }
}

mod one_process {
    use super::{InMemory, MemoryStore, conformance};

    async fn fresh() -> InMemory {
        InMemory(MemoryStore::default())
    }

    conformance!(super::fresh);
}

mod several_processes {
    use super::{InMemory, MemoryStore, conformance};

    async fn fresh() -> InMemory {
        InMemory(MemoryStore::shared())
    }

    conformance!(super::fresh);
}

#[tokio::test]
async fn a_moved_store_keeps_its_data_and_continues() {
    exercise_move(&MemoryStore::default(), MemoryStore::shared()).await;
}

#[test]
fn random_histories_match_the_model() {
    check_random_histories(async || InMemory(MemoryStore::default()), 500);
    check_random_histories(async || InMemory(MemoryStore::shared()), 500);
}
