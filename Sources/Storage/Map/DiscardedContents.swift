import Dispatch

/// What a map held before all of its entries were removed.
///
/// Returning the memory of millions of entries to the system takes many milliseconds. It is done on a thread of its own,
/// because workers wait for the lock of the map's store.
///
/// Safe because only one thread at a time uses it: that of the map, and then that which frees it.
final class DiscardedContents: @unchecked Sendable {
  private static let freeing = DispatchQueue(label: "larder.freeing")
  /// The size that is freed at once, in bytes. It takes less than 0.1 ms.
  private static let smallByteCount = 1 << 20

  var arena: Arena
  var externals: ExternalValues
  var hashIndex: HashIndex
  var order = OrderTree<Records>()

  /// Creates the contents of an empty map.
  init(_ budget: MemoryBudget?, hashIndex: consuming HashIndex) {
    self.hashIndex = hashIndex
    arena = Arena(budget)
    externals = ExternalValues(budget)
  }

  /// Frees a tree of an index that no map has any more.
  static func free(_ tree: consuming IndexTree) {
    guard tree.memoryBytes > smallByteCount else { return }
    freeing.async { [tree] in withExtendedLifetime(tree) {} }
  }

  /// Frees the contents, with the last reference to them.
  /// - Parameter budget: What gets the memory of the records back, at once. Values return theirs themselves.
  func free(_ budget: MemoryBudget?) {
    let byteCount = arena.memoryBytes + order.memoryBytes + hashIndex.memoryBytes
    guard byteCount + externals.memoryBytes > Self.smallByteCount else { return }
    budget?.willReturn(byteCount)
    Self.freeing.async { [self] in
      arena = Arena()
      externals = ExternalValues()
      hashIndex = HashIndex()
      order = OrderTree<Records>()
      budget?.didReturn(byteCount)
    }
  }
}
