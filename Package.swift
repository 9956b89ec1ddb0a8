// swift-tools-version: 6.3

import Foundation
import PackageDescription

/// Whether this package is a dependency of the package that is being built, which SwiftPM does not reveal.
///
/// SwiftPM reads the manifest of a remote dependency from a repository, with `/` as the package's folder, and later from
/// a checkout. Where this package is a local dependency, the shell is usually in the folder of the package being built.
let isDependency: Bool = {
  let package = URL(fileURLWithPath: Context.packageDirectory).resolvingSymlinksInPath()
  if package.path == "/" || package.deletingLastPathComponent().lastPathComponent == "checkouts" { return true }
  guard let shell = Context.environment["PWD"] else { return false }
  var folder = URL(fileURLWithPath: shell).resolvingSymlinksInPath()
  while folder.path != "/" {
    if FileManager.default.fileExists(atPath: folder.appendingPathComponent("Package.swift").path) {
      return folder.path != package.path
    }
    folder.deleteLastPathComponent()
  }
  return false
}()

/// What every Swift target is built with. Continuous integration sets LARDER_WARNINGS=error; a newer compiler's new
/// warning then fails our build and nobody else's.
let settings: [SwiftSetting] =
  [.swiftLanguageMode(.v6), .strictMemorySafety()]
  + (Context.environment["LARDER_WARNINGS"] == "error" ? [.treatAllWarnings(as: .error)] : [])

// Traits guard the dependencies of single products, so that packages that use other products need not fetch them. None is
// enabled when this package is a dependency. A package enables the traits of the products that it uses:
// .package(url: "…", from: "…", traits: ["SQLiteDataSource"])
//
// When this package is built itself, `AllProducts` alone is enabled. SwiftPM passes the enabled traits to the compiler in
// an order that changes from one build plan to the next; with several of them, each plan would compile everything again.
let commands = TargetDependencyCondition.when(traits: ["AllProducts", "Commands"])
let larderLifecycle = TargetDependencyCondition.when(traits: ["AllProducts", "LarderLifecycle"])
let larderObservability = TargetDependencyCondition.when(traits: ["AllProducts", "LarderObservability"])
let secretDataSource = TargetDependencyCondition.when(traits: ["AllProducts", "SecretDataSource"])
let sqliteDataSource = TargetDependencyCondition.when(traits: ["AllProducts", "SQLiteDataSource"])

let argumentParser: Target.Dependency = .product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: commands)

let package = Package(
  name: "larder",
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderTLS", targets: ["LarderTLS"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
    .library(name: "LarderObservability", targets: ["LarderObservability"]),
    .library(name: "LarderLifecycle", targets: ["LarderLifecycle"]),
    .library(name: "Documents", targets: ["Documents"]),
    .library(name: "TypedQueries", targets: ["TypedQueries"]),
    .library(name: "DataSources", targets: ["DataSources"]),
    .library(name: "DataSourceFutures", targets: ["DataSourceFutures"]),
    .library(name: "SecretDataSource", targets: ["SecretDataSource"]),
    .library(name: "SQLiteDataSource", targets: ["SQLiteDataSource"]),
    .executable(name: "larderd", targets: ["larderd"]),
    .executable(name: "larder", targets: ["larder"]),
    .executable(name: "larder-bench", targets: ["larder-bench"]),
    .executable(name: "bench-echo", targets: ["bench-echo"]),
    .executable(name: "bench-gets", targets: ["bench-gets"]),
  ],
  traits: [
    .trait(name: "AllProducts", description: "All products"),
    .trait(name: "Commands", description: "larderd, larder and the benchmarks"),
    .trait(name: "LarderLifecycle", description: "The product LarderLifecycle, which needs swift-service-lifecycle"),
    .trait(
      name: "LarderObservability",
      description: "The product LarderObservability, which needs swift-log, swift-metrics and swift-distributed-tracing"
    ),
    .trait(name: "SecretDataSource", description: "The product SecretDataSource, which needs swift-crypto"),
    .trait(name: "SQLiteDataSource", description: "The product SQLiteDataSource, which needs GRDB"),
    .default(enabledTraits: isDependency ? [] : ["AllProducts"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
  ],
  targets: [
    .target(name: "CLinux"),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CLibYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CLibedit", pkgConfig: "libedit", providers: [.apt(["libedit-dev"])]),
    .target(name: "Basics", swiftSettings: settings),
    .target(name: "Platform", dependencies: ["Basics", "CLinux"], swiftSettings: settings),
    .target(name: "YAML", dependencies: ["CLibYAML"], swiftSettings: settings),
    .target(name: "Tokens", dependencies: ["EntryFiles"], swiftSettings: settings),
    .target(name: "TLS", dependencies: ["COpenSSL", "Platform"], swiftSettings: settings),
    .target(name: "Systemd", dependencies: ["Basics", "CSystemd", "Platform"], swiftSettings: settings),
    .target(name: "Wire", swiftSettings: settings),
    .target(name: "Documents", dependencies: ["Basics", "CLinux"], swiftSettings: settings),
    .target(name: "EntryFiles", dependencies: ["CLinux"], swiftSettings: settings),
    .target(
      name: "Storage", dependencies: ["Basics", "CLinux", "Documents", "EntryFiles", "Platform"],
      swiftSettings: settings),
    .target(
      name: "Replication", dependencies: ["Basics", "Documents", "Platform", "Storage"], swiftSettings: settings),
    .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .target(
      name: "PostgresLog", dependencies: ["CPostgreSQL", "Platform", "Replication", "Storage"], swiftSettings: settings),
    .target(
      name: "LarderServer", dependencies: ["Basics", "Documents", "Wire", "Storage", "Tokens", "Platform"],
      swiftSettings: settings),
    .target(name: "CWebConsole", exclude: ["files"]),
    .target(
      name: "WebConsole", dependencies: ["CWebConsole", "CZlib", "Documents", "LarderServer", "YAML"],
      swiftSettings: settings),
    .target(
      name: "LarderService",
      dependencies: [
        "Basics", "EntryFiles", "LarderServer", "Platform", "PostgresLog", "Replication", "Storage", "Systemd", "TLS",
        "Tokens", "WebConsole", "Wire", "YAML",
      ],
      swiftSettings: settings),
    .target(
      name: "DataSources", dependencies: ["Basics", "Documents", "EntryFiles", "Platform"], swiftSettings: settings),
    .target(name: "TypedQueries", dependencies: ["DataSources", "Documents"], swiftSettings: settings),
    .target(name: "DataSourceFutures", dependencies: ["DataSources"], swiftSettings: settings),
    .target(
      name: "SecretDataSource",
      dependencies: [
        "DataSources", .product(name: "Crypto", package: "swift-crypto", condition: secretDataSource),
      ],
      swiftSettings: settings),
    .target(
      name: "SQLiteDataSource",
      dependencies: [
        "DataSources", "Documents", .product(name: "GRDB", package: "GRDB.swift", condition: sqliteDataSource),
      ],
      swiftSettings: settings),
    .target(
      name: "Larder", dependencies: ["Basics", "DataSources", "Documents", "TypedQueries", "Wire", "Platform"],
      swiftSettings: settings),
    .target(name: "LarderTLS", dependencies: ["Larder", "Platform", "TLS"], swiftSettings: settings),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderServer", "Platform"], swiftSettings: settings),
    .target(
      name: "LarderObservability",
      dependencies: [
        "Larder", "Platform",
        .product(name: "Logging", package: "swift-log", condition: larderObservability),
        .product(name: "Metrics", package: "swift-metrics", condition: larderObservability),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: larderObservability),
      ],
      swiftSettings: settings),
    .target(
      name: "LarderLifecycle",
      dependencies: [
        "Larder", .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: larderLifecycle),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "larderd",
      dependencies: ["Basics", "LarderService", "LarderServer", "Systemd", "Platform", argumentParser],
      swiftSettings: settings),
    .executableTarget(
      name: "larder",
      dependencies: [
        "Basics", "Documents", "Larder", "LarderTLS", "Storage", "Platform", "Tokens", "TypedQueries", "CLibedit",
        "CLinux", "Wire", "YAML", argumentParser,
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        "Basics", "CPostgreSQL", "Wire", "Platform", "Storage", "Larder", "DataSources", "Documents", "LarderTesting",
        "TypedQueries", argumentParser,
        .product(name: "Histogram", package: "hdrhistogram-swift", condition: commands),
        .product(name: "GRDBSQLite", package: "GRDB.swift", condition: sqliteDataSource),
      ],
      path: "Benchmarks/larder-bench", swiftSettings: settings),
    .executableTarget(name: "bench-echo", path: "Benchmarks/bench-echo"),
    .executableTarget(name: "bench-gets", path: "Benchmarks/bench-gets"),
    .testTarget(
      name: "LarderServerTests",
      dependencies: [
        "Documents", "LarderServer", "Storage", "TLS", "Tokens", "Wire", "Platform", "DocumentTestSupport",
        "ReplicationTestSupport", "TestSupport", "TLSTestSupport", "larderd",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "LarderServiceTests",
      dependencies: ["LarderService", "LarderServer", "Systemd", "Storage", "Platform", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "ReplicationTests",
      dependencies: [
        "Documents", "Larder", "LarderServer", "Platform", "Replication", "ReplicationTestSupport", "Storage",
        "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(name: "TokensTests", dependencies: ["Tokens"], swiftSettings: settings),
    .testTarget(
      name: "TLSTests", dependencies: ["TLS", "Platform", "TLSTestSupport", "TestSupport"], swiftSettings: settings),
    .testTarget(name: "PlatformTests", dependencies: ["Basics", "Platform", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "DocumentsTests", dependencies: ["Documents", "DocumentTestSupport", "TestSupport"],
      exclude: ["JSON/JSONTestSuite", "Selectors/reference.py", "Selectors/reference_queries.py"],
      swiftSettings: settings),
    .testTarget(name: "WireTests", dependencies: ["Wire", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "LarderTests",
      dependencies: [
        "Documents", "Larder", "LarderServer", "LarderTLS", "DataSources", "LarderTesting", "Storage", "Tokens",
        "TypedQueries", "Wire", "Platform", "ReplicationTestSupport", "TestSupport", "TLS", "TLSTestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "LarderObservabilityTests",
      dependencies: [
        "Larder", "LarderLifecycle", "LarderObservability", "LarderTesting", "Platform", "TestSupport",
        .product(name: "InMemoryLogging", package: "swift-log", condition: larderObservability),
        .product(name: "MetricsTestKit", package: "swift-metrics", condition: larderObservability),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: larderObservability),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle", condition: larderLifecycle),
      ],
      swiftSettings: settings),
    .testTarget(
      name: "LarderCommandTests",
      dependencies: ["Basics", "Documents", "larder", "larderd", "Larder", "LarderTLS", "Platform"],
      swiftSettings: settings),
    .target(
      name: "ReplicationTestSupport", dependencies: ["LarderServer", "Platform", "Replication", "Storage"],
      path: "Tests/ReplicationTestSupport", swiftSettings: settings),
    .target(name: "TestSupport", dependencies: ["Platform"], path: "Tests/TestSupport", swiftSettings: settings),
    .target(
      name: "TLSTestSupport", dependencies: ["COpenSSL", "TLS"], path: "Tests/TLSTestSupport", swiftSettings: settings),
    .target(
      name: "DocumentTestSupport", dependencies: ["Documents", "TestSupport"], path: "Tests/DocumentTestSupport",
      swiftSettings: settings),
    .testTarget(
      name: "TypedQueriesTests",
      dependencies: [
        "TypedQueries", "Documents", "DataSources", "SQLiteDataSource", "Larder", "LarderTesting",
        "DocumentTestSupport", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "StorageTests",
      dependencies: [
        "Documents", "EntryFiles", "Platform", "Replication", "ReplicationTestSupport", "Storage", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "DataSourcesTests",
      dependencies: [
        "DataSources", "DataSourceFutures", "Documents", "SecretDataSource", "SQLiteDataSource", "Larder",
        "LarderServer", "LarderTesting", "ReplicationTestSupport", "EntryFiles", "Storage", "Platform",
        "DocumentTestSupport", "TestSupport", "TopLevelSnippets",
        "TopLevelFutures",
        .product(name: "GRDB", package: "GRDB.swift", condition: sqliteDataSource),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "TopLevelSnippets",
      dependencies: ["DataSources", "Documents", "SecretDataSource", "SQLiteDataSource", "Larder", "LarderTesting"],
      path: "Tests/TopLevelSnippets", swiftSettings: settings),
    // Some seeds ignore the futures of their calls, which is a warning.
    .executableTarget(
      name: "TopLevelFutures", dependencies: ["DataSources", "DataSourceFutures"], path: "Tests/TopLevelFutures",
      swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-suppress-warnings"])]),
    .testTarget(
      name: "LarderBenchTests",
      dependencies: ["larder-bench", "bench-echo", "bench-gets", "larderd", "Wire", "Platform"],
      swiftSettings: settings),
  ]
)
