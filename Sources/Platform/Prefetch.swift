public import CLinux

/// Asks the processor for a cache line that will be needed soon. Any address is good; nothing happens but that.
@inlinable @inline(__always)
public func prefetch(_ address: UnsafeRawPointer) {
  unsafe CLinux.prefetch(address)
}
