import Testing

@testable import larder

@Suite struct `A descending field on the command line` {
  private static let create = ["index", "create", "people", "by-age"]

  @Test(arguments: [
    (create + ["-age"], ["index", "create", "--", "people", "by-age", "-age"]),
    (
      create + ["name", "-height", "--where", "-x", "-a.b", "--background"],
      ["index", "create", "--where", "-x", "--background", "--", "people", "by-age", "name", "-height", "-a.b"]
    ),
    (
      ["--timeout", "5s"] + create + ["-age", "--", "-h", "--x"],
      ["--timeout", "5s", "index", "create", "--", "people", "by-age", "-age", "-h", "--x"]
    ),
    (create + ["-age", "--where=x"], ["index", "create", "--where=x", "--", "people", "by-age", "-age"]),
    (create + ["-wage", "--wheer"], ["index", "create", "--wheer", "--", "people", "by-age", "-wage"]),
  ]) func `a descending field is read as an argument of index create`(words: [String], separated: [String]) {
    #expect(CommandLinePosition.separatingFields(in: words) == separated)
  }

  @Test(arguments: [
    create + ["age"], create + ["-h"], create + ["--", "-age"], create + ["age", "--where", "-age"],
    ["index", "create", "people", "-age"], ["index", "create", "-x"], ["put", "items", "k", "-5"],
    ["delete", "items", "-5"], ["index", "delete", "people", "-x"], ["find", "people", "--sort", "-age"], ["-x"], [],
  ]) func `a word that isn't a descending field is left where it is`(words: [String]) {
    #expect(CommandLinePosition.separatingFields(in: words) == words)
  }
}
