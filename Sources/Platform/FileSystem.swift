/// The calls on files that durable stores are made of. The real ones are `LocalFileSystem`'s; tests have a disk that fails on purpose.
///
/// Paths are absolute. A symbolic link is never followed in a path's last component. Signals are dealt with inside.
package protocol FileSystem: Sendable {
  /// Opens a regular file, and makes it first if it may.
  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File

  /// The names in a folder, without `.` and `..`, in no order. A name that is not UTF-8 is repaired, and can then not be opened.
  func list(_ folder: String) throws(SystemError) -> [String]

  /// What there is under a path; nil when there is nothing.
  func kind(of path: String) throws(SystemError) -> FileKind?

  func makeFolder(_ path: String) throws(SystemError)
  /// Takes the place of what has the new name already.
  func rename(_ path: String, to other: String) throws(SystemError)
  func remove(_ path: String) throws(SystemError)
  func removeFolder(_ path: String) throws(SystemError)

  /// Opens a folder that is there, to sync it.
  func openFolder(_ path: String) throws(SystemError) -> any Folder
}

extension FileSystem {
  /// Has the names in a folder be on the disk when this returns: of new, renamed and removed files.
  package func syncFolder(_ path: String) throws(SystemError) { try openFolder(path).sync() }
}

package enum FileAccess: Sendable {
  /// To read a file that is there.
  case reading
  /// To read and write a file that is there.
  case writing
  /// To read and write a file that is not there yet.
  case making
}

package enum FileKind: Sendable, Equatable {
  case file(byteCount: Int)
  case folder
  /// A link, a socket, a device …
  case other
}

/// An open folder, for whoever must be able to sync it when nothing can be opened any more. It is closed when the last who has it lets go.
package protocol Folder: AnyObject, Sendable {
  /// Has the names in it be on the disk when this returns: `fsync(2)`. It must never be tried again after a failure.
  func sync() throws(SystemError)
}

/// An open file. It is closed when the last who has it lets go.
package protocol File: AnyObject, Sendable {
  func byteCount() throws(SystemError) -> Int

  /// Reads until the room is full or the file ends.
  /// - Returns: how many bytes were read.
  func read(at offset: Int, into room: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int

  /// Writes all bytes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError)

  /// Makes the file at least so long, of zeroes, and takes the disk's space for all of it: `fallocate(2)`.
  func allocate(_ byteCount: Int) throws(SystemError)

  func truncate(to byteCount: Int) throws(SystemError)

  /// Has the file's bytes and size be on the disk when this returns: `fdatasync(2)`. It must never be tried again after a failure.
  func sync() throws(SystemError)
}
