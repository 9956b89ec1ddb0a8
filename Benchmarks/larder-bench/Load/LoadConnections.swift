/// The connections of one thread, changed in place.
@safe
struct LoadConnections<Session: BitwiseCopyable>: ~Copyable {
  private let slots: UnsafeMutablePointer<LoadConnection<Session>>
  private let capacity: Int
  private(set) var count = 0

  init(capacity: Int) {
    self.capacity = capacity
    unsafe slots = .allocate(capacity: capacity)
  }

  deinit {
    unsafe slots.deinitialize(count: count)
    unsafe slots.deallocate()
  }

  mutating func append(_ connection: consuming LoadConnection<Session>) {
    precondition(count < capacity)
    unsafe (slots + count).initialize(to: connection)
    count += 1
  }

  /// Safe because the index is checked, and the table can't be changed while one of its slots is being accessed.
  subscript(index: Int) -> LoadConnection<Session> {
    @inline(__always)
    unsafeAddress {
      precondition(index >= 0 && index < count)
      return unsafe UnsafePointer(slots + index)
    }
    @inline(__always)
    unsafeMutableAddress {
      precondition(index >= 0 && index < count)
      return unsafe slots + index
    }
  }
}
