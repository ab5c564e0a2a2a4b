//! An agent's conversation.

pub mod observe;
