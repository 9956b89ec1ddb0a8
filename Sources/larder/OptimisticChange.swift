import Larder

/// A change that depends on entries read before. It is made on the condition that they are unchanged, and otherwise
/// tried again.
enum OptimisticChange {
  private static let maxAttemptCount = 100

  /// Calls a function until no condition fails.
  /// - Parameter change: Reads the entries and changes them on the condition that they are as they were read.
  /// - Throws: `LarderError` of the kind `conditionFailed` if other clients write the entries again and again.
  static func perform<Result>(_ change: () async throws -> Result) async throws -> Result {
    for _ in 1..<maxAttemptCount {
      do { return try await change() } catch let error as LarderError where error.kind == .conditionFailed {}
    }
    return try await change()
  }
}
