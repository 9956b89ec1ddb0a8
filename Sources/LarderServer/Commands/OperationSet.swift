import Wire

/// A set of operations, so that a property of their descriptors is a bit test on the path of small requests.
struct OperationSet: Equatable, Sendable {
  private var bits: UInt64 = 0

  init(where isIncluded: (OperationDescriptor) -> Bool) {
    for operation in Operation.allCases where isIncluded(operation.descriptor) {
      bits |= 1 << UInt64(operation.rawValue)
    }
  }

  static let none = OperationSet { _ in false }

  /// The operations on entries that rights to a store permit, whatever the keys.
  static func onEntries(permittedBy rights: StoreRights = StoreRights(.admin)) -> OperationSet {
    OperationSet { $0.target == .entries && $0.right <= rights.toAll }
  }

  /// The operations on entries that rights to a store may permit, depending on the keys, or on what is done with these.
  static func onKeys(permittedBy rights: StoreRights) -> OperationSet {
    OperationSet {
      $0.target == .entries && $0.scope == .keys && $0.minRight <= rights.toAny
        && (rights.dependOnKeys || $0.minRight < $0.right)
    }
  }

  /// Those of the operations that change nothing.
  var reads: OperationSet { intersection(OperationSet(where: \.isRead)) }

  private func intersection(_ other: OperationSet) -> OperationSet {
    var result = self
    result.bits &= other.bits
    return result
  }

  /// - Parameter kind: That of a request, which may be no operation.
  @inline(__always)
  func contains(_ kind: UInt8) -> Bool { bits >> UInt64(kind) & 1 != 0 }
}
