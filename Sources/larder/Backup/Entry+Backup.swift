import Larder
import Storage

/// Entries between a client's form and that of a backup, which has the elements of a list as the wire has them.
extension EntryValue {
  /// Nil when the elements don't fill the bytes.
  init?(_ kind: EntryKind, _ bytes: [UInt8]) {
    guard kind == .list else {
      self = .single(bytes)
      return
    }
    var elements: [[UInt8]] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= 4 else { return nil }
      let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard count <= rest.count else { return nil }
      elements.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    self = .list(elements)
  }

  var kind: EntryKind {
    switch self {
    case .single: .single
    case .list: .list
    }
  }

  var backupBytes: [UInt8] {
    switch self {
    case .single(let bytes): return bytes
    case .list(let elements):
      var bytes: [UInt8] = []
      for element in elements {
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: element.count >> shift)) }
        bytes += element
      }
      return bytes
    }
  }
}
