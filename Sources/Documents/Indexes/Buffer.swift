/// An array of plain values with one owner. Appending takes a fraction of the time that it takes with `Array`, which
/// checks each time whether it is shared.
///
/// Safe because the memory belongs to the buffer, and because its elements are accessed only within `count`.
@safe
struct Buffer<Element: BitwiseCopyable>: ~Copyable {
  private var base: UnsafeMutablePointer<Element>
  private var capacity = 16
  private(set) var count = 0

  /// The number of elements behind the last one for which there is memory, so that words can be read and written.
  static var slack: Int { 8 }

  init() { unsafe base = Self.memory(capacity) }

  private static func memory(_ capacity: Int) -> UnsafeMutablePointer<Element> {
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: (capacity + slack) * MemoryLayout<Element>.stride, alignment: MemoryLayout<Element>.alignment)
    unsafe memory.initializeMemory(
      as: UInt8.self, repeating: 0, count: (capacity + slack) * MemoryLayout<Element>.stride)
    return unsafe memory.assumingMemoryBound(to: Element.self)
  }

  deinit { unsafe base.deallocate() }

  subscript(position: Int) -> Element {
    @inline(__always)
    get {
      precondition(position >= 0 && position < count, "there is no such element")
      return unsafe base[position]
    }
  }

  @inline(__always)
  mutating func removeAll() { count = 0 }

  @inline(__always)
  mutating func append(_ element: Element) {
    if count == capacity { reserve(1) }
    unsafe base[count] = element
    count &+= 1
  }

  /// Makes room for some more elements.
  @inline(never)
  private mutating func reserve(_ additionalCount: Int) {
    let newCapacity = max(capacity * 2, count + additionalCount)
    let memory = unsafe Self.memory(newCapacity)
    unsafe memory.update(from: base, count: count)
    unsafe base.deallocate()
    unsafe base = memory
    capacity = newCapacity
  }

  /// Appends elements.
  @inline(__always)
  mutating func append(_ elements: Span<Element>) {
    if capacity &- count < elements.count { reserve(elements.count) }
    unsafe elements.withUnsafeBufferPointer { source in
      guard let start = source.baseAddress else { return }
      unsafe (base + count).update(from: start, count: source.count)
    }
    count &+= elements.count
  }

  /// Calls `body` with the elements.
  @inline(__always)
  borrowing func withElements<Result>(_ body: (Span<Element>) -> Result) -> Result {
    unsafe body(UnsafeBufferPointer(start: base, count: count).span)
  }

  /// Sorts the elements from a position on, and removes those that equal one before them.
  /// - Parameter order: Returns how elements compare: a negative number, zero or a positive number.
  mutating func sort(from start: Int, by order: (Element, Element) -> Int) {
    precondition(start >= 0 && start <= count, "there is no such element")
    var elements = unsafe UnsafeMutableBufferPointer(start: base + start, count: count - start)
    unsafe elements.sort { order($0, $1) < 0 }
    var end = start
    for position in start..<count where unsafe end == start || order(base[end - 1], base[position]) != 0 {
      unsafe base[end] = base[position]
      end += 1
    }
    count = end
  }
}

extension Buffer<UInt8>: KeyOutput {
  /// Copies some elements, or their complements, in words of eight bytes. Up to `slack` bytes of the output behind them
  /// change, too.
  @unsafe @inline(__always)
  borrowing func copy(
    _ range: Range<Int>, complemented: Bool, to output: UnsafeMutableBufferPointer<UInt8>, at start: Int
  ) {
    precondition(range.upperBound <= count && start >= 0 && output.count &- start >= range.count &+ Self.slack)
    let mask: UInt64 = complemented ? .max : 0
    withElements { elements in
      unsafe elements.withUnsafeBytes { source in
        let target = unsafe UnsafeMutableRawPointer(output.baseAddress.unsafelyUnwrapped + start)
        let source = unsafe source.baseAddress.unsafelyUnwrapped + range.lowerBound
        var offset = 0
        while offset < range.count {
          let word = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
          unsafe target.storeBytes(of: word ^ mask, toByteOffset: offset, as: UInt64.self)
          offset &+= 8
        }
      }
    }
  }
}
