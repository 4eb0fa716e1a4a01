//! The seam over the block queue of `sinew-shm`.
