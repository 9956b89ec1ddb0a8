import Basics
import Platform

/// Where a journal writes the commits of one store: the files of its engine.
///
/// Used by one thread at a time, the journal's. A sink that has failed once is not written to again.
package protocol Engine: AnyObject {
  /// Bytes of records that can be written for sure: their place on the disk is taken already.
  var room: Int { get }

  /// Takes more room, ahead of need.
  /// - Throws: `noSpace`, after which it may be tried again; or `failed`.
  func makeRoom() throws(EngineError)

  /// Writes sealed records (`CommitBuffer`), in the order of their revisions, of which `last` is the last one.
  /// - Parameters:
  ///   - separatedCount: how many values apart they have.
  ///   - syncs: whether they must be on the disk when this returns.
  /// - Returns: where the values apart lie, in their order, if the store may read them from there and need not keep them in memory.
  /// - Throws: `failed`. Nothing is known then of the records.
  func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [PlacedValue]

  /// Has all that was written be on the disk when this returns.
  func sync() throws(EngineError)

  /// Work that can wait, such as compaction: a bounded piece of it, on the journal's thread when it has nothing else to do.
  /// - Returns: whether there is more.
  func performMaintenance(_ store: Store) throws(EngineError) -> Bool

  /// Ends all work that was left to other threads.
  func endWork()

  /// Ends the files in order, after `endWork`. Nothing is written afterwards.
  func close() throws(EngineError)

  /// Figures for the store's stats, by their names of `Protocol/wire.md`. From any thread.
  var figures: [(name: String, value: UInt64)] { get }

  /// How long the disk took to make what was written durable; nil where that is not known.
  var syncTimes: DurationHistogram? { get }
}

extension Engine {
  package var syncTimes: DurationHistogram? { nil }
}

/// Why files can't be written.
package enum EngineError: Error, Equatable, Sendable {
  /// The disk is full, or nothing can be opened.
  case noSpace
  /// A call failed whose outcome is unknown, or that can't be tried again: which one, on what, and why.
  case failed(String)
}
