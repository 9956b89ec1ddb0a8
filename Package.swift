// swift-tools-version: 6.3

import PackageDescription

/// What every Swift target is built with. Continuous integration sets LARDER_WARNINGS=error; a newer compiler's new
/// warning then fails our build and nobody else's.
let settings: [SwiftSetting] =
  [.swiftLanguageMode(.v6), .strictMemorySafety()]
  + (Context.environment["LARDER_WARNINGS"] == "error" ? [.treatAllWarnings(as: .error)] : [])

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "larder",
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
    .library(name: "DataSources", targets: ["DataSources"]),
    .library(name: "DataSourceFutures", targets: ["DataSourceFutures"]),
    .library(name: "SecretDataSource", targets: ["SecretDataSource"]),
    .library(name: "SQLiteDataSource", targets: ["SQLiteDataSource"]),
    .executable(name: "larderd", targets: ["larderd"]),
    .executable(name: "larder", targets: ["larder"]),
    .executable(name: "larder-bench", targets: ["larder-bench"]),
    .executable(name: "bench-echo", targets: ["bench-echo"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
  ],
  targets: [
    .target(name: "CLinux"),
    .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CLibedit", pkgConfig: "libedit", providers: [.apt(["libedit-dev"])]),
    .target(name: "Platform", dependencies: ["CLinux"], swiftSettings: settings),
    .target(name: "Systemd", dependencies: ["CSystemd", "Platform"], swiftSettings: settings),
    .target(name: "Wire", swiftSettings: settings),
    .target(name: "EntryFiles", dependencies: ["CLinux"], swiftSettings: settings),
    .target(name: "Storage", dependencies: ["EntryFiles", "Platform"], swiftSettings: settings),
    .target(name: "LarderServer", dependencies: ["Wire", "Storage", "Platform"], swiftSettings: settings),
    .target(
      name: "LarderService",
      dependencies: [
        "LarderServer", "Storage", "Systemd", "Platform", "Yams",
        .product(name: "Configuration", package: "swift-configuration"),
      ],
      swiftSettings: settings),
    .target(name: "DataSources", dependencies: ["EntryFiles"], swiftSettings: settings),
    .target(name: "DataSourceFutures", dependencies: ["DataSources"], swiftSettings: settings),
    .target(
      name: "SecretDataSource", dependencies: ["DataSources", .product(name: "Crypto", package: "swift-crypto")],
      swiftSettings: settings),
    .target(
      name: "SQLiteDataSource", dependencies: ["DataSources", .product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: settings),
    .target(name: "Larder", dependencies: ["DataSources", "Wire", "Platform"], swiftSettings: settings),
    .target(name: "LarderTesting", dependencies: ["Larder", "LarderServer", "Platform"], swiftSettings: settings),
    .executableTarget(
      name: "larderd", dependencies: ["LarderService", "LarderServer", "Systemd", "Platform", argumentParser],
      swiftSettings: settings),
    .executableTarget(
      name: "larder", dependencies: ["Larder", "Storage", "Platform", "CLibedit", "CLinux", argumentParser],
      swiftSettings: settings),
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        "Wire", "Platform", "Storage", "Larder", "DataSources", "LarderTesting", argumentParser,
        .product(name: "Histogram", package: "hdrhistogram-swift"),
      ],
      path: "Benchmarks/larder-bench", swiftSettings: settings),
    .executableTarget(name: "bench-echo", path: "Benchmarks/bench-echo"),
    .testTarget(
      name: "LarderServerTests", dependencies: ["LarderServer", "Storage", "Wire", "Platform", "larderd"],
      swiftSettings: settings),
    .testTarget(
      name: "LarderServiceTests", dependencies: ["LarderService", "LarderServer", "Systemd", "Storage", "Platform"],
      swiftSettings: settings),
    .testTarget(name: "PlatformTests", dependencies: ["Platform"], swiftSettings: settings),
    .testTarget(name: "WireTests", dependencies: ["Wire"], swiftSettings: settings),
    .testTarget(
      name: "LarderTests",
      dependencies: ["Larder", "LarderServer", "DataSources", "LarderTesting", "Wire", "Platform"],
      swiftSettings: settings),
    .testTarget(
      name: "LarderCommandTests", dependencies: ["larder", "larderd", "Larder", "Platform"], swiftSettings: settings),
    .target(
      name: "SimulatedDisk", dependencies: ["Platform"], path: "Tests/Support/SimulatedDisk", swiftSettings: settings),
    .testTarget(
      name: "StorageTests", dependencies: ["Storage", "EntryFiles", "SimulatedDisk", "Platform"],
      swiftSettings: settings),
    .testTarget(
      name: "LogTests", dependencies: ["Storage", "SimulatedDisk", "Platform"], swiftSettings: settings),
    .testTarget(
      name: "DataSourcesTests",
      dependencies: [
        "DataSources", "DataSourceFutures", "SecretDataSource", "SQLiteDataSource", "Larder", "LarderTesting",
        "Storage", "Platform", "TopLevelSnippets", "TopLevelFutures",
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "TopLevelSnippets",
      dependencies: ["DataSources", "SecretDataSource", "SQLiteDataSource", "Larder", "LarderTesting"],
      path: "Tests/TopLevelSnippets", swiftSettings: settings),
    // Some seeds ignore the futures of their calls, which is a warning.
    .executableTarget(
      name: "TopLevelFutures", dependencies: ["DataSources", "DataSourceFutures"], path: "Tests/TopLevelFutures",
      swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-suppress-warnings"])]),
    .testTarget(
      name: "LarderBenchTests", dependencies: ["larder-bench", "bench-echo", "larderd", "Wire", "Platform"],
      swiftSettings: settings),
  ]
)
