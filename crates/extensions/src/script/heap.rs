//! The memory allocator of the engine: it counts memory, enforces a limit, and is fast at the start.
//!
//! The engine packs small objects into pages and allocates these one by one, which the system's allocator does slowly
//! on a second thread. Pages and small blocks therefore come from one region, which is mapped at once and handed out
//! from front to back; freed blocks are stored in lists by size. Large blocks, and those that do not fit into the
//! region, come from the program's allocator. The region is never returned to the system while the engine runs, so at
//! most its size is held back.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rquickjs::allocator::Allocator;

/// The alignment of every block in bytes. Its size is stored in as many bytes before it.
const UNIT: usize = size_of::<usize>();

/// Bytes of the region.
const REGION_SIZE: usize = 2 << 20;

/// Bytes of the region that are populated in advance: about the need of one extension.
const PREPOPULATED: usize = 512 << 10;

/// Larger blocks, in bytes, do not come from the region.
const MAX_SMALL: usize = 8 << 10;

/// The engine's allocator.
pub(crate) struct Heap {
    // Only the engine's thread writes this, so that reading and writing need not be atomic together.
    used: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    region: Option<Region>,
}

impl Heap {
    /// Creates an allocator that counts into `used` and refuses to exceed the current value of `most`.
    pub(crate) fn new(used: Arc<AtomicUsize>, most: Arc<AtomicUsize>) -> Self {
        Self {
            used,
            most,
            region: Region::new(),
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn fits(&self, size: usize) -> bool {
        self.used().saturating_add(size) <= self.most.load(Ordering::Relaxed)
    }

    fn add(&self, size: usize) {
        self.used
            .store(self.used().wrapping_add(size), Ordering::Relaxed);
    }

    fn subtract(&self, size: usize) {
        self.used
            .store(self.used().wrapping_sub(size), Ordering::Relaxed);
    }

    /// Allocates `size` bytes. Returns the block and whether it is known to be zeroed.
    fn block(&mut self, size: usize, make: unsafe fn(Layout) -> *mut u8) -> (*mut u8, bool) {
        let Some(size) = size.checked_next_multiple_of(UNIT) else {
            return (ptr::null_mut(), false);
        };
        // An empty block would have no room for the link of the free list.
        let size = size.max(UNIT);
        if !self.fits(size) {
            return (ptr::null_mut(), false);
        }
        let block = match &mut self.region {
            Some(region) if size <= MAX_SMALL => region.take(size),
            _ => ptr::null_mut(),
        };
        if !block.is_null() {
            self.add(size);
            return (block, false);
        }
        let Some(layout) = layout(size) else {
            return (ptr::null_mut(), false);
        };
        // SAFETY: the layout has a size; a whole block is made, and its first unit holds the size.
        let block = unsafe {
            let start = make(layout);
            if start.is_null() {
                return (start, false);
            }
            start.cast::<usize>().write(size);
            start.add(UNIT)
        };
        self.add(size);
        (block, true)
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(UNIT)?, UNIT).ok()
}

// SAFETY: blocks are aligned to `UNIT`, do not overlap, and have at least the requested size, which is stored in front
// of them.
unsafe impl Allocator for Heap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.block(size, alloc).0
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(size) = count.checked_mul(size) else {
            return ptr::null_mut();
        };
        let (block, zeroed) = self.block(size, alloc_zeroed);
        if !block.is_null() && !zeroed {
            // SAFETY: the block holds at least `size` bytes.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        if block.is_null() {
            return;
        }
        // SAFETY: the caller returns a block of this allocator, so its size is in front of it and it came from the
        // region or, with this very layout, from the program's allocator.
        unsafe {
            let size = Self::usable_size(block);
            self.subtract(size);
            match &mut self.region {
                Some(region) if region.holds(block) => region.give_back(block, size),
                _ => {
                    let layout = Layout::from_size_align_unchecked(size + UNIT, UNIT);
                    dealloc(block.sub(UNIT), layout);
                }
            }
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, wanted: usize) -> *mut u8 {
        if block.is_null() {
            return self.alloc(wanted);
        }
        // SAFETY: the caller returns a block of this allocator; see `dealloc`.
        unsafe {
            let old = Self::usable_size(block);
            let inside = self
                .region
                .as_ref()
                .is_some_and(|region| region.holds(block));
            if inside {
                if wanted <= old {
                    return block;
                }
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(block, moved, old);
                    self.dealloc(block);
                }
                return moved;
            }
            let Some(new) = wanted.max(UNIT).checked_next_multiple_of(UNIT) else {
                return ptr::null_mut();
            };
            if layout(new).is_none() || new > old && !self.fits(new - old) {
                return ptr::null_mut();
            }
            let layout = Layout::from_size_align_unchecked(old + UNIT, UNIT);
            let start = realloc(block.sub(UNIT), layout, new + UNIT);
            if start.is_null() {
                return start;
            }
            start.cast::<usize>().write(new);
            self.subtract(old);
            self.add(new);
            start.add(UNIT)
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the size is in front of every block, which is aligned for it.
        unsafe { block.sub(UNIT).cast::<usize>().read() }
    }
}

/// One mapping, handed out from front to back.
struct Region {
    start: *mut u8,
    /// Bytes handed out so far.
    taken: usize,
    /// For each size in units, the block that was freed last; it points to the one freed before.
    free: [*mut u8; MAX_SMALL / UNIT + 1],
}

impl Region {
    fn new() -> Option<Self> {
        // SAFETY: a new private mapping at an address that the system chooses touches nothing else. Populating pages in
        // advance is only advice, and its failure does not matter.
        let start = unsafe {
            let start = libc::mmap(
                ptr::null_mut(),
                REGION_SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return None;
            }
            #[cfg(target_os = "linux")]
            libc::madvise(start, PREPOPULATED, libc::MADV_POPULATE_WRITE);
            start
        };
        Some(Self {
            start: start.cast(),
            taken: 0,
            free: [ptr::null_mut(); MAX_SMALL / UNIT + 1],
        })
    }

    /// Returns a block of `size` bytes, a multiple of `UNIT` and at most `MAX_SMALL`; null if none is left.
    fn take(&mut self, size: usize) -> *mut u8 {
        let first = &mut self.free[size / UNIT];
        let block = *first;
        // SAFETY: a free block holds the address of the next in its first unit; the part of the region that was not
        // handed out yet belongs to this allocator.
        unsafe {
            if !block.is_null() {
                *first = block.cast::<*mut u8>().read();
                return block;
            }
            if self.taken + UNIT + size > REGION_SIZE {
                return ptr::null_mut();
            }
            let start = self.start.add(self.taken);
            self.taken += UNIT + size;
            start.cast::<usize>().write(size);
            start.add(UNIT)
        }
    }

    fn holds(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.start as usize) < REGION_SIZE
    }

    /// Adds `block` of `size` bytes to the free list.
    ///
    /// # Safety
    ///
    /// The block must have come from this region and not have been freed.
    unsafe fn give_back(&mut self, block: *mut u8, size: usize) {
        let first = &mut self.free[size / UNIT];
        // SAFETY: the block is not in use any more, and it holds at least one unit.
        unsafe { block.cast::<*mut u8>().write(*first) };
        *first = block;
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this region, and the engine, whose blocks are in it, has ended.
        unsafe { libc::munmap(self.start.cast(), REGION_SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(most: usize) -> (Heap, Arc<AtomicUsize>) {
        let used = Arc::new(AtomicUsize::new(0));
        let limit = Arc::new(AtomicUsize::new(most));
        (Heap::new(Arc::clone(&used), limit), used)
    }

    #[test]
    fn blocks_hold_their_content_while_others_change() {
        let (mut heap, used) = heap(usize::MAX);
        let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
        let mut random = 1_usize;
        // More than the region holds, so that blocks from both sources occur.
        for round in 0..4_000_usize {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let size = (random >> 33) % 9000 + 1;
            let fill = round as u8;
            // SAFETY: every block is written within its size and given back once.
            unsafe {
                match blocks.len() {
                    count if count > 100 && random >> 62 == 0 => {
                        let (block, size, fill) = blocks.swap_remove((random >> 20) % count);
                        assert!((0..size).all(|at| *block.add(at) == fill));
                        heap.dealloc(block);
                    }
                    count if count > 100 && random >> 62 == 1 => {
                        let place = (random >> 20) % count;
                        let (block, old, fill) = blocks[place];
                        let moved = heap.realloc(block, size);
                        assert!((0..old.min(size)).all(|at| *moved.add(at) == fill));
                        moved.write_bytes(fill, size);
                        blocks[place] = (moved, size, fill);
                    }
                    _ => {
                        let zeros = heap.calloc(size, 1);
                        assert!((0..size).all(|at| *zeros.add(at) == 0));
                        assert!(
                            Heap::usable_size(zeros) >= size
                                && (zeros as usize).is_multiple_of(UNIT)
                        );
                        zeros.write_bytes(fill, size);
                        blocks.push((zeros, size, fill));
                    }
                }
            }
        }
        let region = heap.region.as_ref().unwrap();
        assert!(blocks.iter().any(|&(block, ..)| region.holds(block)));
        assert!(blocks.iter().any(|&(block, ..)| !region.holds(block)));
        for (block, size, fill) in blocks {
            // SAFETY: as above.
            unsafe {
                assert!((0..size).all(|at| *block.add(at) == fill));
                heap.dealloc(block);
            }
        }
        assert_eq!(used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn allocations_over_the_limit_are_refused() {
        let (mut heap, used) = heap(1000);
        let block = heap.alloc(600);
        assert!(!block.is_null());
        assert!(heap.alloc(600).is_null());
        assert!(heap.alloc(usize::MAX).is_null());
        assert!(heap.calloc(usize::MAX, 2).is_null());
        // SAFETY: the block is given back once.
        unsafe {
            assert!(heap.realloc(block, 1100).is_null());
            heap.dealloc(block);
        }
        assert_eq!(used.load(Ordering::Relaxed), 0);
        assert!(!heap.alloc(600).is_null());
    }
}
