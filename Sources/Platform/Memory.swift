public import CLinux
import Glibc

/// Whole pages from the kernel. They are zeroed and cost nothing until they are touched, so that a chunk of 1 MiB is
/// cheap for a store of ten entries. Unmapping returns them to the system at once, which `free` doesn't promise.
package enum Pages {
  /// The size of a page on x86-64. Mapped sizes are multiples of it.
  package static let pageByteCount = 4_096
  /// The unit by which arenas and node pools grow.
  package static let chunkByteCount = 1 << 20

  /// Maps zeroed memory. Returns nil if the system refuses.
  package static func map(byteCount: Int) -> UnsafeMutableRawPointer? {
    let base = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return unsafe base == MAP_FAILED ? nil : base
  }

  package static func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) {
    let status = unsafe munmap(base, byteCount)
    precondition(status == 0, "unmapping memory failed")
  }
}

/// The memory of this process, as the system and `malloc` see it.
package enum ProcessMemory {
  /// The resident memory, and how much of it belongs to files, such as the program's code, in bytes; nil without
  /// /proc.
  package static func resident() -> (total: Int, files: Int)? {
    let file = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 256)
    let count = unsafe text.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
    guard count > 0 else { return nil }
    // The size, the resident pages, those of them that belong to files, and others.
    let pages = text[..<count].split(separator: UInt8(ascii: " ")).map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
    guard pages.count > 2 else { return nil }
    return (pages[1] * Pages.pageByteCount, pages[2] * Pages.pageByteCount)
  }

  /// The size of all blocks in use from `malloc`, in bytes. Takes time in proportion to the number of free blocks.
  package static var allocatedBytes: Int {
    let info = mallinfo2()
    return Int(info.uordblks + info.hblkhd)
  }

  /// Makes all threads share one heap, because `trimHeap` doesn't reach the ends of others. Call it before there are
  /// threads.
  package static func useOneHeap() {
    mallopt(M_ARENA_MAX, 1)
  }

  /// Makes `malloc` return the pages of freed blocks to the system. Takes about a millisecond for some megabytes.
  package static func trimHeap() {
    malloc_trim(0)
  }
}

/// Prefetches a cache line that will be needed soon. Any address is valid, and there is no other effect.
@inlinable @inline(__always)
public func prefetch(_ address: UnsafeRawPointer) {
  unsafe CLinux.prefetch(address)
}

/// Returns the memory that the process can have, in bytes: that of the machine, or the lowest limit of its control groups.
package func availableMemory() -> Int {
  let machine = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
  // The line of version 2 is 0::/PATH.
  let lines = readText("/proc/self/cgroup").split(separator: "\n")
  guard let line = lines.first(where: { $0.hasPrefix("0::/") }) else { return machine }
  var (path, limit) = (line.dropFirst(3), machine)
  while true {
    let text = readText("/sys/fs/cgroup\(path)/memory.max").prefix { $0 != "\n" }
    if let bytes = Int(text) { limit = min(limit, bytes) }
    guard let slash = path.lastIndex(of: "/"), path.count > 1 else { return limit }
    path = path[..<slash]
  }
}

/// Returns the text of a small file of the kernel; an empty one if it can't be read.
private func readText(_ path: String) -> String {
  (try? readFile(path, maxByteCount: 65_536)).map { String(decoding: $0, as: UTF8.self) } ?? ""
}
