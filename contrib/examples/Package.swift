// swift-tools-version: 6.3

import PackageDescription

// A user's package: it sees the products of Larder and nothing else.
let package = Package(
  name: "examples",
  dependencies: [.package(name: "larder", path: "../..", traits: [])],
  targets: [
    .executableTarget(
      name: "bookshop",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "DataSources", package: "larder"),
      ])
  ]
)
