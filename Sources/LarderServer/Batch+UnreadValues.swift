import Storage
import Wire

/// A value that an answer has room for, and that is in a file still.
struct UnreadValue {
  let value: StoredValue
  /// Where its room is in the output.
  let offset: Int
  let key: [UInt8]
}

/// Values that are not in memory. A request only makes room for them; they are read once it has run, without the store's lock, because a
/// disk may take its time and everyone else waits for the lock. The worker's own connections do wait.
extension Batch {
  /// Appends an entry's record, but for the value, which `readValues` puts there.
  mutating func appendUnread(_ entry: EntryView, key: UnsafeRawBufferPointer) {
    guard let value = entry.storedValue else { preconditionFailure("a value is in memory or in a file") }
    unsafe output.appendEntryHead(
      kind: ValueKind(entry.kind), revision: entry.revision, expiry: entry.expiry == 0 ? 0 : entry.expiry &- now,
      key: key, valueSize: entry.valueByteCount)
    unread.append(
      UnreadValue(value: value, offset: output.extend(by: entry.valueByteCount), key: unsafe Array(entry.key)))
  }

  /// Forgets what was answered from there on.
  mutating func takeBack(to mark: Int) {
    output.truncate(to: mark)
    unread.removeAll()
  }

  /// Reads the values that a frame lacks, which is the output's last. If one can't be read, an error takes the frame's place.
  /// - Parameter mark: where the frame begins.
  /// - Returns: whether all is there.
  mutating func readValues(of id: UInt32, from mark: Int) -> Bool {
    letGo()
    for value in unread {
      do throws(StoredValueError) {
        unsafe try output.overwrite(at: value.offset, byteCount: value.value.byteCount) {
          (room) throws(StoredValueError) in unsafe try value.value.read(into: room)
        }
      } catch {
        takeBack(to: mark)
        fail(.valueDamaged, id, "the value of \"\(String(decoding: value.key.prefix(128), as: UTF8.self))\": \(error)")
        return false
      }
    }
    unread.removeAll(keepingCapacity: true)
    return true
  }

  /// The same for the first frame of an answer, which then may have been left open.
  mutating func readValues(of id: UInt32, from mark: Int, _ connection: inout Connection) {
    guard !readValues(of: id, from: mark),
      let index = connection.answers.firstIndex(where: { $0.id == id })
    else { return }
    connection.answers.remove(at: index).end()
  }
}
