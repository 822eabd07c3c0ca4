//! The store in memory keeps what every store must keep, for one process and for several.

use bates_testkit::{DataSet, MemoryStore, check_random_histories, conformance, exercise_move};

/// Data that lasts as long as the value. Each opening is another process.
struct InMemory(MemoryStore);

impl DataSet for InMemory {
    type Store = MemoryStore;

    async fn open(&self) -> Self::Store {
        self.0.node()
    }
}

mod alone {
    use super::{InMemory, MemoryStore, conformance};

    async fn fresh() -> InMemory {
        InMemory(MemoryStore::default())
    }

    conformance!(super::fresh);
}

mod among_others {
    use super::{InMemory, MemoryStore, conformance};

    async fn fresh() -> InMemory {
        InMemory(MemoryStore::shared())
    }

    conformance!(super::fresh);
}

#[tokio::test]
async fn everything_arrives_and_goes_on_where_it_was() {
    exercise_move(&MemoryStore::default(), MemoryStore::shared()).await;
}

#[test]
fn random_histories_are_as_the_model_says() {
    check_random_histories(async || InMemory(MemoryStore::default()), 500);
    check_random_histories(async || InMemory(MemoryStore::shared()), 500);
}
