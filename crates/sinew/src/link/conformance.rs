//! The suite that every implementation of the seam passes.
