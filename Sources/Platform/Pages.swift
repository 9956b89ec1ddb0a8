import CLinux
import Glibc

/// Whole pages from the kernel. They come zeroed and cost nothing until they are touched, so a chunk of 1 MiB is cheap
/// for a store of ten entries; and they go back at once, which `free` doesn't promise.
package enum Pages {
  /// The size of a page on x86-64; what is mapped is a multiple of it.
  package static let pageByteCount = 4_096
  /// The unit in which arenas and pools of nodes grow.
  package static let chunkByteCount = 1 << 20

  /// So many bytes of zeroes, or nil when the system refuses.
  package static func map(byteCount: Int) -> UnsafeMutableRawPointer? {
    let base = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return unsafe base == MAP_FAILED ? nil : base
  }

  package static func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) {
    let status = unsafe munmap(base, byteCount)
    precondition(status == 0, "unmapping memory failed")
  }

  /// Has `malloc` give the pages back that it keeps of freed blocks. Takes about a millisecond for some megabytes.
  package static func trimHeap() {
    malloc_trim(0)
  }
}
