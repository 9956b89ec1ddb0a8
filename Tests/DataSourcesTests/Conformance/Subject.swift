import DataSources
import Foundation
import Testing

/// A kind of source that the conformance suite is run against.
struct Subject: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The source of a place and a name.
  let make: @Sendable (Place, String) throws -> AnyDataSource<Item>
  /// The same source as one of another type; nil where there are no bytes in between, so that the compiler refuses it.
  var misread: (@Sendable (Place, String) throws -> AnyDataSource<Int>)?

  /// Runs a test with a new and empty source.
  func run(_ body: (AnyDataSource<Item>) async throws -> Void) async throws {
    try await runAtPlace { place in try await body(make(place, "items")) }
  }

  /// Runs a test with a new and empty place.
  func runAtPlace(_ body: (Place) async throws -> Void) async throws {
    let place = try Place()
    let result: Result<Void, any Error>
    do { result = .success(try await body(place)) } catch { result = .failure(error) }
    await place.close()
    try result.get()
  }
}

extension Subject {
  /// A source with a directory of its own, or the same source again over the same directory.
  init(testDescription: String, make: @escaping @Sendable (URL) throws -> AnyDataSource<Item>) {
    self.init(testDescription: testDescription) { place, name in
      try make(place.url.appendingPathComponent(name))
    }
  }

  /// Everything that claims to be a whole key-value source.
  static let all = inProcess + remote
}
