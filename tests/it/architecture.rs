//! The rules of the tree: layers, names, documents.
