import Larder
import LarderLifecycle
import LarderObservability
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@Suite struct ReadmeExample {
  /// The README's example. It isn't run, because a service group changes what signals do to the process.
  private static func run(_ server: some Service, _ logger: Logger) async throws {
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderLogging(logger: logger), LarderMetrics(), LarderTracing()]
    let larder = try LarderClient("unix:/run/larder.sock", configuration: configuration)
    let group = ServiceGroup(services: [larder, server], gracefulShutdownSignals: [.sigterm], logger: logger)
    try await group.run()
  }

  @Test func `the README shows the example that is compiled`() throws {
    let snippet = try #require(
      DocumentationPage("README.md").snippets().first { $0.joined().contains("configuration.observers") })
    let source = try DocumentationPage.source("Tests/LarderObservabilityTests/ReadmeExample.swift")
    #expect(source.contains(DocumentationPage.text(snippet)))
  }
}
