//! Many tasks: batches, candidates, evaluations, and the corpus of example projects.

mod again;
mod candidates;
mod corpus;
mod eval;
mod jobs;
mod refused;
