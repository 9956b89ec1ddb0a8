import Testing
import Wire

@testable import Larder

/// Frames of a watch, made into commits without any I/O.
@Suite struct CommitAssemblyTests {
  private func frame(_ through: UInt64, _ changes: (ChangeKind, UInt64, String)...) -> [UInt8] {
    var buffer = ByteBuffer()
    buffer.append(through)
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    for (kind, revision, key) in changes {
      var key = key
      key.withUTF8 {
        unsafe buffer.appendChange(kind, revision: revision, key: UnsafeRawBufferPointer($0), value: none)
      }
    }
    return buffer.toArray()
  }

  private func take(_ frame: [UInt8], _ assembly: inout CommitAssembly) -> [String]? {
    guard unsafe assembly.take(frame.span.bytes) else { return nil }
    var commits: [String] = []
    while let commit = assembly.popFirst() { commits.append("\(commit.revision):\(commit.changes.count)") }
    return commits
  }

  @Test func `a commit waits until everything up to its revision has come`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(take(frame(4), &assembly) == [])
    #expect(assembly.through == 4)
    #expect(take(frame(5, (.single, 5, "a"), (.deleted, 6, "b")), &assembly) == ["5:1"])
    #expect(take(frame(5, (.single, 6, "c")), &assembly) == [])
    #expect(take(frame(7, (.single, 6, "d"), (.single, 7, "e")), &assembly) == ["6:3", "7:1"])
    // A commit may be found whole in a frame that has nothing of it, and one may be left out.
    #expect(take(frame(8, (.single, 9, "f")), &assembly) == [])
    #expect(take(frame(12), &assembly) == ["9:1"])
  }

  @Test func `another connection brings an unfinished commit anew`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(take(frame(4), &assembly) == [])
    #expect(take(frame(4, (.single, 5, "a")), &assembly) == [])
    assembly.restart()
    #expect(take(frame(4), &assembly) == [])
    #expect(take(frame(5, (.single, 5, "a"), (.single, 5, "b")), &assembly) == ["5:2"])
  }

  @Test func `what loses track says of what`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(take(frame(4, (.lost, 9, "")), &assembly) == [])
    #expect(assembly.lostRevision == 9)
  }

  @Test func `frames that don't go on where the last one ended are refused`() {
    let begun = frame(4)
    let wrong = [
      frame(3), frame(5, (.single, 4, "a")), frame(6, (.single, 6, "a"), (.single, 5, "b")), [1, 2, 3],
      Array(frame(5, (.single, 5, "a")).dropLast()),
    ]
    for frame in wrong {
      var assembly = CommitAssembly(keysOnly: false)
      #expect(take(begun, &assembly) == [])
      #expect(take(frame, &assembly) == nil)
    }
  }
}
