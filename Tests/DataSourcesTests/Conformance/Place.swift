import DataSources
import Foundation
import Larder
import LarderTesting

/// Where a test's sources keep their entries: a directory, and a server for those who ask for it. Sources of one place and one name have
/// the same entries, where they are kept anywhere but in the source itself.
final class Place: Sendable {
  private let directory: TemporaryDirectory
  private let running = Recorder<TestServer>()

  init() throws { directory = try TemporaryDirectory() }

  var url: URL { directory.url }

  /// The server of the place, which is started by the first who asks. One test asks at a time.
  var server: TestServer {
    get throws {
      if let server = running.events.first { return server }
      var configuration = LarderClient.Configuration()
      configuration.waitsForConnection = false
      let server = try TestServer.start(client: configuration)
      running.add(server)
      return server
    }
  }

  /// Stops the server if there is one.
  func close() async {
    for server in running.events { await server.stop() }
  }
}
