import Foundation
import TestSupport
import Testing

/// Top-level code: it runs as an executable, and the compiler rejects what would lose a value or an error.
///
/// In a `main.swift`, the compiler chooses between overloads as in synchronous code, even if the code uses `await`.
@Suite struct TopLevelTests {
  @Test func `the snippets of the README and of DataSources do what they say as top-level code`() throws {
    let run = try Executable.built("TopLevelSnippets").run()
    #expect(run.status == 0)
    #expect(
      run.lines == [
        "overview: Invisible Cities 1", "put: VoidDataSource<Book> has no put",
        "task: failure(VoidDataSource<Book> has no put)",
        "The Name of the Rose true", "book:1", "book:2",
        #"README: ["Invisible Cities", "Invisible Cities", "Invisible Cities"]"#, "LarderTesting: Palomar",
        #"getting started: Invisible Cities ["Cosmicomics", "t zero"] 3 ["qfwfq"]"#,
        "no such book", #"several: 2 2 0 0 ["Invisible Cities"]"#,
        "book 4 exists", "book:4", "book:5", "conditions: 2 2 false true 1",
        #"device storage: [] ["a"] []"#, "salvaged: 0", "file: true", "secret: correct horse",
        #"database: ["Lamp"] Chair"#,
        "composed: The Baron in the Trees", #"repository: ["The Baron in the Trees"]"#,
        "one entry: 5", "Hello, you!", "migrated: Desk lamp poems 1:2", "selectors: 1 1",
      ])
  }

  @Test func `an error that top-level code doesn't catch ends the process`() throws {
    let run = try Executable.built("TopLevelSnippets").run(["throw"])
    #expect(run.status != 0)
    #expect(run.errors.contains("VoidDataSource<Book> has no put"))
    #expect(!run.lines.contains("the error was lost"))
  }

  @Test func `the snippets of the seeds and of DataSourceFutures do what they say as top-level code`() throws {
    let run = try Executable.built("TopLevelFutures").run()
    #expect(run.status == 0)
    #expect(
      run.lines.sorted() == [
        "Found: item", "Success: item", "Success: value of myKey", "Zeno's Conscience", "await: true", "called back",
        "error: illegalArgument", "error: notFound", "ids: delete, get, put", "later search: getAll getAll",
        "put: stored", "queries: delete, get, put", "result: item", #"search: ["far"]"#, #"search: ["near"]"#,
      ])
  }

  @Test func `with DataSources alone, a call without await doesn't compile`() throws {
    let diagnostics = try Compiler.diagnostics(
      of: """
        import DataSources
        let books = InMemoryDataSource<String>()
        try await books.put("a", forId: 1)
        Task { try await books.delete(1) }
        let title = try await books.get(1)
        books.put("a", forId: 1)
        try books.delete(1)
        Task { books.put("a", forId: 1) }
        Task { try books.putAll(["a"], forId: [1]) }
        func synchronous() { books.delete(1) }
        func asynchronous() async throws { try books.put("a", in: IdQuery(1)) }
        """)
    for line in 1...5 { #expect(diagnostics[line] == nil) }
    for line in 6...11 {
      #expect(
        diagnostics[line, default: []].contains {
          $0.hasPrefix("error: ") && ($0.contains("marked with 'await'") || $0.contains("'async' call in a function"))
        }, "\(line)")
    }
  }

  @Test func `with DataSources alone, there are neither futures nor Harmony's names`() throws {
    let diagnostics = try Compiler.diagnostics(
      of: """
        import DataSources
        let books = InMemoryDataSource<String>()
        func getting(_ books: some GetDataSource<String>) async throws -> String { try await books.get(1) }
        func future() { _ = Future(1) }
        func call() { _ = books.get(1) }
        func operation() -> RepositoryOperation { MainOperation() }
        func page() -> any Query { PaginationOffsetLimitQuery(0, 20) }
        func mapper(_ mapper: Mapper<String, Int>) {}
        func error() -> any Error { CoreError.NotFound() }
        """)
    for line in 1...3 { #expect(diagnostics[line] == nil) }
    for line in 4...9 { #expect(diagnostics[line, default: []].contains { $0.hasPrefix("error: ") }, "\(line)") }
  }

  @Test func `with DataSourceFutures, a call that would lose an error doesn't compile or is a warning`() throws {
    let diagnostics = try Compiler.diagnostics(
      of: """
        import DataSourceFutures
        import DataSources
        let books = InMemoryDataSource<String>()
        func asynchronous() async throws { try await books.put("a", forId: 1) }
        func synchronous() { books.get(1).then { print($0) }.fail { print($0) } }
        Task { try await books.put("a", forId: 1) }
        let future = Future { try await books.put("a", forId: 1) }
        try await books.put("a", forId: 1)
        let title = try await books.get(1)
        try await books.deleteAll(AllObjectsQuery())
        Task { books.put("a", forId: 1) }
        Task { books.putAll(["a"], in: IdQuery(1)) }
        func losesError() { books.put("a", forId: 1) }
        func losesErrorOfDelete() { books.delete(1) }
        """)
    for line in 1...7 { #expect(diagnostics[line] == nil) }
    for line in 8...12 {
      #expect(
        diagnostics[line, default: []].contains {
          $0.hasPrefix("error: ") && $0.contains("unavailable from asynchronous contexts")
        }, "\(line)")
    }
    for line in 13...14 {
      #expect(diagnostics[line, default: []].contains { $0.hasPrefix("warning: ") && $0.contains("unused") }, "\(line)")
    }
  }
}

/// A program of this build, or another one.
private struct Executable {
  /// The directory of this build, in which the tests are, too.
  static let directory = URL(
    fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/"
  ).deletingLastPathComponent()

  private let url: URL

  init(_ url: URL) {
    self.url = url
  }

  static func built(_ name: String) throws -> Executable {
    let url = directory.appendingPathComponent(name)
    try #require(FileManager.default.isExecutableFile(atPath: url.path), "\(url.path) was not built")
    return Executable(url)
  }

  /// Runs the program and returns its exit status, the lines of its output, and its errors.
  func run(_ arguments: [String] = []) throws -> (status: Int32, lines: [String], errors: String) {
    let process = Process()
    process.executableURL = url
    process.arguments = arguments
    // A backtrace takes longer than the program.
    process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
    let temporary = try TemporaryFolder()
    let errors = temporary.url.appendingPathComponent("errors")
    try Data().write(to: errors)
    let output = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (
      process.terminationStatus, text.split(separator: "\n").map(String.init),
      String(decoding: try Data(contentsOf: errors), as: UTF8.self)
    )
  }
}

/// The Swift compiler, with the modules of this build.
private enum Compiler {
  /// Checks the types of a `main.swift`, and returns the errors and warnings by line.
  static func diagnostics(of source: String) throws -> [Int: [String]] {
    let temporary = try TemporaryFolder()
    let file = temporary.url.appendingPathComponent("main.swift")
    try Data(source.utf8).write(to: file)
    let build = Executable.directory
    let run = try Executable(URL(fileURLWithPath: "/usr/bin/env")).run([
      "swiftc", "-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm", "-I", build.path + "/Modules",
      "-Xcc", "-fmodule-map-file=\(build.path)/CLinux.build/module.modulemap",
      "-module-cache-path", temporary.url.appendingPathComponent("cache").path, file.path,
    ])
    var diagnostics: [Int: [String]] = [:]
    for line in run.errors.split(separator: "\n") {
      guard let match = line.wholeMatch(of: /.*main\.swift:(\d+):\d+: ((?:error|warning): .*)/) else { continue }
      diagnostics[Int(match.1)!, default: []].append(String(match.2))
    }
    // Without any diagnostics, the compiler has failed for another reason.
    try #require(!diagnostics.isEmpty, "\(run.errors)")
    return diagnostics
  }
}
