//! The real `executor-task` with the real git and terraform, against a small `callback` in this process.

mod apply;
mod clone;
mod fake_callback;
mod fake_tool;
mod floods;
mod hostile;
mod launcher;
mod plan;
mod stopping;
mod tools;
mod world;
