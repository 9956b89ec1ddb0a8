/// Blocks of memory with keys, which are known by their handles.
protocol KeyedBlocks {
  func key(of block: UInt32) -> Key
}

/// Blocks of memory that an order tree orders: by their keys, and by more if there are equal keys.
protocol OrderedBlocks: KeyedBlocks {
  associatedtype SearchKey

  /// Returns whether a block's key comes before the bound that another key sets.
  func precedes(_ block: UInt32, _ key: SearchKey, _ bound: Key.Bound) -> Bool

  /// Returns whether a block is in use, as it must be if the tree refers to it. Reads its first word only.
  func isAllocated(_ block: UInt32) -> Bool
}
