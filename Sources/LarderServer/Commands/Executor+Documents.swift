import Documents
import Storage
import Wire

/// What the jobs of finds and aggregations have found, which a session sends.
extension Executor {
  /// The size of the documents, in bytes, after which a part with fields of them ends.
  private static let maxProjectedBytes = 256 << 10
  /// The number of documents that are looked at under one acquisition of the store's lock.
  private static let maxHandlesPerAccess = 1_024

  /// A document that was found.
  enum VisitedDocument {
    case entry(EntryView)
    /// Some of its fields.
    case fields(StreamRecord)
  }

  /// How far the documents of a part go.
  enum VisitedDocuments {
    /// To the document at this position among the handles, which is left to send.
    case upTo(Int)
    /// To no document, because the fields of the first one can't be made before it is read from the disk.
    case nothing(MissingValue, handle: UInt32)
  }

  /// Makes room for a job among the server's, unless the server or the client has too many.
  /// - Parameter runningCount: The number of the client's jobs.
  func openPlace(for job: DocumentJob, runningCount: Int) -> Share? {
    runningCount < (limits.finds + 3) / 4 ? server.jobs.open(job, limit: limits.finds) : nil
  }

  /// Passes documents to `append` until there are no more, there were enough for one part, or it returns false, which
  /// means that it has not appended the document.
  /// - Parameters:
  ///   - first: The position of the first one among the handles.
  ///   - read: A document that was read from the disk, and its handle.
  mutating func visit(
    _ found: FoundDocuments, from first: Int, of store: Store, in snapshot: Snapshot,
    read: (handle: UInt32, read: ValueRead)?, _ append: (VisitedDocument) -> Bool
  ) throws(CommandFailure) -> VisitedDocuments {
    if let projection = found.projection {
      return try visitFields(
        projection, found.handles, from: first, of: store, in: snapshot, read: read, append)
    }
    let handles = found.handles
    var next = first
    var isFull = false
    while next < handles.count, !isFull {
      do throws(StorageError) {
        try store.access { map throws(StorageError) in
          try map.check(snapshot)
          let end = min(next + Self.maxHandlesPerAccess, handles.count)
          while next < end {
            let entry = map.entry(at: handles[next])
            if !entry.isExpired(at: now) {
              isFull = !append(.entry(entry))
              if isFull { return }
            }
            next += 1
          }
        }
      } catch { throw CommandFailure(error) }
    }
    return .upTo(next)
  }

  /// Passes fields of documents to `append` until there are no more, it returns false, enough documents were read, or the
  /// next one has to be read from the disk.
  private mutating func visitFields(
    _ projection: EntryProjection, _ handles: [UInt32], from first: Int, of store: Store, in snapshot: Snapshot,
    read: (handle: UInt32, read: ValueRead)?, _ append: (VisitedDocument) -> Bool
  ) throws(CommandFailure) -> VisitedDocuments {
    defer { documents.end(in: store) }
    var next = first
    var (byteCount, appendedCount) = (0, 0)
    while next < handles.count, byteCount < Self.maxProjectedBytes {
      let gatheredCount: Int
      do throws(StorageError) {
        gatheredCount = try documents.gather(handles[next...], of: store, in: snapshot, now: now)
      } catch { throw CommandFailure(error) }
      for index in 0..<documents.count {
        let entry = documents[index]
        let object: [UInt8]
        if let read, read.handle == entry.handle {
          object = unsafe projection.object(of: entry.replacingValue(read.read.bytes.bytes))
        } else if let made = try documents.withCachedEntry(index, projection.object) {
          object = made
        } else {
          if appendedCount == 0 { return .nothing(documents.missingValue(of: index), handle: entry.handle) }
          return .upTo(handles[next...].firstIndex(of: entry.handle) ?? next)
        }
        guard try pass(object, of: entry, to: append) else {
          return .upTo(handles[next...].firstIndex(of: entry.handle) ?? next)
        }
        appendedCount += 1
      }
      next += gatheredCount
      byteCount += documents.byteCount
    }
    return .upTo(next)
  }

  /// - Returns: False, with nothing appended, if the part is full.
  private func pass(
    _ object: [UInt8], of entry: StoredEntry, to append: (VisitedDocument) -> Bool
  ) throws(CommandFailure) -> Bool {
    let key = entry.withKey { key in unsafe key.withUnsafeBufferPointer { unsafe ArraySlice($0) } }
    let lifetime = entry.expiry == 0 ? 0 : entry.expiry - now
    let size = EntryRecord.headerSize + (lifetime == 0 ? 0 : 8) + key.count + object.count
    guard size <= limits.maxBodyBytes else {
      let name = String(decoding: key.prefix(128), as: UTF8.self)
      throw CommandFailure(
        .valueTooLarge, "the fields of \"\(name)\" are larger than a frame (limits.frame-bytes); ask for fewer fields")
    }
    return append(.fields(.object(key: key, object, revision: entry.revision, lifetime: lifetime)))
  }
}
