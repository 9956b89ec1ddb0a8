import Foundation
import Platform
import TestSupport
import Testing

@testable import Storage

/// The golden logs: `Protocol/vectors/log/README.md`.
struct LogVectorTests {
  struct Vector: Codable, Equatable {
    private struct Value: Codable, Equatable {
      private let kind: String
      private let revision: UInt64
      private let valueHex: String
      private let expiry: UInt64?

      init(_ entry: ModelEntry) {
        (kind, revision, valueHex) = ("\(entry.kind)", entry.revision, entry.value.hex)
        expiry = entry.expiry == 0 ? nil : entry.expiry + WriteOperation.clockOffset
      }
    }

    private struct Refusal: Codable, Equatable {
      private let file: String
      private let offset: Int

      init(path: String, offset: Int) {
        file = String(path.dropFirst(TestLog.folder.count + 1))
        self.offset = offset
      }
    }

    let name: String
    let files: [String: String]
    private let now: UInt64
    private var entries: [String: Value]?
    private var revision: UInt64?
    private var cutBytes: Int?
    private var damage: Refusal?

    /// Reads a log that consists of these files.
    init(name: String, now: UInt64, reading files: [String: String]) throws {
      (self.name, self.now, self.files) = (name, now, files)
      let disk = SimulatedDisk(seed: 1)
      try disk.createFolder(TestLog.folder)
      for (name, hex) in files { disk.place("\(TestLog.folder)/\(name)", [UInt8](hex: hex)) }
      do {
        let log = try TestLog(disk, now: now - WriteOperation.clockOffset)
        entries = try log.entries(now: now - WriteOperation.clockOffset).mapValues(Value.init)
        revision = log.revision
        cutBytes = log.recovery.truncatedBytes
      } catch LogError.damaged(let path, let offset, _) {
        damage = Refusal(path: path, offset: offset)
      }
    }

    /// Returns the vector with the results of reading its files now.
    func readAgain() throws -> Vector { try Vector(name: name, now: now, reading: files) }
  }

  /// The logs of version 1, which nothing writes any more.
  private static let oldPath = "log/logs-1.json"
  private static let path = "log/logs.json"

  @Test(arguments: [oldPath, path]) func `golden logs are read as specified`(path: String) throws {
    let vectors = try ProjectFiles.vectors(path, as: Vector.self)
    #expect(vectors.count >= 6)
    for vector in vectors { #expect(try vector.readAgain() == vector) }
  }

  @Test func `written logs match the golden log byte for byte`() throws {
    let vectors = try ProjectFiles.vectors(Self.path, as: Vector.self)
    #expect(vectors.first { $0.name == "sealed" }?.files == (try Self.written()).mapValues(\.hex))
  }

  /// Rewrites the vectors. Use this only after a change of the format.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_VECTORS"] != nil))
  func `write the golden logs`() throws {
    let files = try Self.written()
    let segment = try #require(files["0000000001.log"])
    let manifest = try #require(files["manifest"])
    // What was known before the log was closed.
    var older = manifest
    let newest = manifest[16] > manifest[512 + 16] ? 0 : 512
    older.replaceSubrange(newest..<newest + 56, with: [UInt8](repeating: 0, count: 56))
    func vector(_ name: String, _ bytes: [UInt8], manifest: [UInt8]? = nil) throws -> Vector {
      try Vector(
        name: name, now: WriteOperation.clockOffset + 100,
        reading: ["0000000001.log": bytes.hex, "manifest": (manifest ?? older).hex])
    }
    var open = Array(segment.dropLast(SegmentTrailer.byteCount))
    open += [UInt8](repeating: 0, count: 24)
    var flipped = segment
    flipped[100] ^= 4
    var torn = open
    torn.replaceSubrange(open.count - 24..<open.count - 19, with: [9, 0, 0, 0, 1])
    var header = segment
    header[30] ^= 1
    let vectors = [
      try vector("sealed", segment, manifest: manifest), try vector("not sealed", open),
      try vector("not sealed, and less than the manifest knows", Array(open.dropLast(100)), manifest: manifest),
      try vector("cut in the last record", Array(open.dropLast(30))),
      try vector("a torn tail", torn), try vector("a bit flipped in a record", flipped),
      try vector("a bit flipped in the header", header),
      try Vector(
        name: "a segment is missing", now: WriteOperation.clockOffset, reading: ["manifest": older.hex]),
      try Vector(
        name: "the manifest is missing", now: WriteOperation.clockOffset, reading: ["0000000001.log": segment.hex]),
    ]
    try ProjectFiles.writeVectors(vectors, to: Self.path)
  }

  /// Returns the files of a small log with every kind of operation.
  private static func written() throws -> [String: [UInt8]] {
    let disk = SimulatedDisk(seed: 1)
    var configuration = LogConfiguration.tiny
    configuration.makeSalt = { 0x0FED_CBA9_8765_4321 }
    let log = try TestLog(disk, configuration: configuration)
    try log.commit([.put(key: "gone", value: [0xFF], kind: .single, expiry: 0)])
    try log.commit([.deleteAll])
    try log.commit([.put(key: "a", value: [1, 2, 3], kind: .single, expiry: 0)])
    try log.commit([.put(key: "list/é", value: [1, 0, 0, 0, 7], kind: .list, expiry: 0)])
    try log.commit([.put(key: "expires", value: [], kind: .single, expiry: 5_000)])
    try log.commit([.put(key: "expired", value: [8], kind: .single, expiry: 50), .delete(key: "a")])
    try log.commit([.put(key: "last", value: [UInt8](repeating: 0x61, count: 20), kind: .single, expiry: 0)])
    try log.engine.close()
    return [
      "0000000001.log": disk.contents("/log/0000000001.log")!, "manifest": disk.contents("/log/manifest")!,
    ]
  }
}
