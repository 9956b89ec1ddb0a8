// swift-tools-version: 6.3

import PackageDescription

/// What every Swift target is built with. Continuous integration sets LARDER_WARNINGS=error; a newer compiler's new
/// warning then fails our build and nobody else's.
let settings: [SwiftSetting] =
  [.swiftLanguageMode(.v6), .strictMemorySafety()]
  + (Context.environment["LARDER_WARNINGS"] == "error" ? [.treatAllWarnings(as: .error)] : [])


let package = Package(
  name: "larder",
  targets: [
    .target(name: "CLinux"),
    .target(name: "Platform", dependencies: ["CLinux"], swiftSettings: settings),
    .target(name: "Wire", swiftSettings: settings),
    .target(name: "Storage", dependencies: ["Platform"], swiftSettings: settings),
    .testTarget(name: "StorageTests", dependencies: ["Storage"], swiftSettings: settings),
  ]
)
