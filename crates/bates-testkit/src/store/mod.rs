//! What tests of stores and of what stands on them need: the conformance suite, a model, and faults.

mod aside;
mod audit;
mod audited;
mod books;
mod carried;
mod client_leases;
mod delivery;
mod described;
mod exercise;
mod faulty;
mod faulty_documents;
mod faulty_moving;
mod memory;
mod moved;
mod moving;
mod outbox;
mod pools;
mod runs;
mod settled;
mod together;

pub use audit::exercise_audit;
pub use books::exercise_books;
pub use client_leases::exercise_client_leases;
pub use exercise::{DataSet, exercise_store};
pub use faulty::{Fault, FaultyStore};
pub use memory::MemoryStore;
pub use moving::exercise_move;
pub use outbox::exercise_outbox;
pub use pools::exercise_pools;
