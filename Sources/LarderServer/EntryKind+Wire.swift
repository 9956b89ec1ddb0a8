import Storage
import Wire

extension EntryKind {
  @inline(__always)
  init(_ kind: ValueKind) { self = kind == .list ? .list : .single }
}

extension ValueKind {
  @inline(__always)
  init(_ kind: EntryKind) { self = kind == .list ? .list : .single }
}
