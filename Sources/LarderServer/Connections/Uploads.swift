import Wire

/// The values that a client uploads: `Protocol/wire.md` §6.13. Owned by a connection.
struct Uploads {
  private var uploads: [ValueUpload] = []

  init() {}

  /// - Parameter uploads: Uploads that have begun.
  init(_ uploads: [ValueUpload]) { self.uploads = uploads }

  @inline(__always)
  var isEmpty: Bool { uploads.isEmpty }

  /// The upload with a number; nil if there is none.
  subscript(number: UInt64) -> ValueUpload? { uploads.first { $0.number == number } }

  /// Begins an upload.
  /// - Returns: Its number; nil if there are too many.
  mutating func begin(_ makeUpload: () -> ValueUpload) -> UInt64? {
    guard uploads.count < ValueUpload.maxCount else { return nil }
    let upload = makeUpload()
    uploads.append(upload)
    return upload.number
  }

  /// Discards an upload.
  /// - Returns: Whether there was one with that number.
  @discardableResult
  mutating func remove(_ number: UInt64) -> Bool {
    guard let index = uploads.firstIndex(where: { $0.number == number }) else { return false }
    uploads.remove(at: index)
    return true
  }

  /// The failure of a request about an upload that isn't there.
  func failure(_ number: UInt64, _ limits: borrowing ServerLimits) -> CommandFailure {
    CommandFailure(
      .uploadUnknown,
      """
      no upload \(number) is open on this connection; one without a part for \(limits.frameTime) (limits.frame-time) is \
      discarded, and so is one that takes longer than \(limits.uploadTime) (limits.upload-time), or whose memory clients \
      with fewer uploads need
      """)
  }

  // MARK: Uploads that end

  /// The earliest time, in milliseconds, at which one of them is discarded unless something happens; nil if there is none.
  func deadline(_ limits: borrowing ServerLimits) -> UInt64? {
    var earliest: UInt64?
    for upload in uploads { earliest = min(earliest ?? .max, upload.deadline(limits)) }
    return earliest
  }

  /// Discards those that have received nothing for too long, or take too long.
  mutating func discardOverdue(_ limits: borrowing ServerLimits, now: UInt64) {
    for index in uploads.indices.reversed() where uploads[index].deadline(limits) <= now { uploads.remove(at: index) }
  }

  /// Discards those that have to give up their memory to other clients.
  mutating func discardRevoked() { uploads.removeAll(where: \.isRevoked) }
}
