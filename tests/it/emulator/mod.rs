//! Tests of emulator, one file per feature.
