import ArgumentParser
import Documents
import Larder

/// The command `larder cluster`: servers that share stores with the engine `replicated`.
struct ClusterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cluster", abstract: "Shows the servers that share stores, or hands stores over.",
    subcommands: [ClusterShow.self, ClusterMove.self, ClusterDrain.self], defaultSubcommand: ClusterShow.self)
}

struct ClusterShow: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the servers, and which stores each of them serves.",
    discussion: """
      As the server has last seen them, a moment ago. Prints a table on a terminal, otherwise one line of JSON for each \
      database: {"database","node","nodes":[{"name","address","lease"}],"stores":[{"name","leader","staleness"}]}, leases \
      in milliseconds. A store without a leader is on its way from one server to another. The staleness is how old a store \
      that another server serves may be here, in milliseconds. The table shows the greatest one of each server's stores.

      Example: larder cluster
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let databases = try await connection.client().cluster()
    var output = Output()
    guard Output.showsRows else {
      for database in databases {
        output.bytes += database.encoded()
        output.bytes.append("\n")
      }
      return try output.flush()
    }
    var table = Table("DATABASE", "SERVER", "ADDRESS", "AGE HERE", "STORES")
    for database in databases.map(Cluster.init) {
      for node in database.nodes {
        let stores = database.stores.filter { $0.leader == node.name }
        table.add(
          database.name, node.name, node.address, node.name == database.own ? "-" : Self.age(of: stores),
          stores.isEmpty ? "-" : stores.map(\.name).joined(separator: ", "))
      }
      let waiting = database.stores.filter { $0.leader == nil }
      if !waiting.isEmpty {
        table.add(
          database.name, "(none for now)", "-", Self.age(of: waiting), waiting.map(\.name).joined(separator: ", "))
      }
    }
    try output.write(table, orIfEmpty: "The server shares no stores with others.")
  }

  /// Returns how old what the server has of other servers' stores may be.
  private static func age(of stores: [Cluster.Store]) -> String {
    guard let oldest = stores.compactMap(\.staleness).max() else { return "-" }
    return oldest < 10_000 ? "\(oldest) ms" : "\(oldest / 1_000) s"
  }
}

struct ClusterMove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Hands a store over to another server.",
    discussion: """
      Asks the server that serves the store now. Nothing that was acknowledged is lost. Until the other server has read the \
      store, calls get the error notLeader, and clients that know both servers wait.

      Example: larder cluster move orders pantry
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Argument(help: "The store.")
  private var store: String

  @Argument(help: "The name of the server that is to serve it, its setting cluster.node.")
  private var node: String

  func run() async throws { try await connection.client().moveStore(store, to: node) }
}

struct ClusterDrain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain", abstract: "Hands all stores that a server serves over to others, in turn.",
    discussion: """
      For an upgrade of the server, or of its machine. Prints each store and the server that is to serve it. Stopping the \
      server does the same, but lets the others take what they find.

      Example: larder cluster drain pantry
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Argument(help: "The name of the server, its setting cluster.node. (default: the server that replies)")
  private var node: String?

  func run() async throws {
    guard try node != nil || connection.servers().onlyAddress != nil else {
      throw CommandFailure(
        .usage, "one of several servers is to be drained: add its name, which 'larder cluster' shows")
    }
    let client = try connection.client()
    var output = Output()
    let clusters = try await client.cluster().map(Cluster.init)
    guard !clusters.isEmpty else {
      throw CommandFailure(.refused, "the server shares no stores with others, so there is nothing to hand over")
    }
    if let node, !clusters.contains(where: { $0.nodes.contains { $0.name == node } }) {
      throw CommandFailure(.refused, "there is no server \(node); 'larder cluster' shows the servers")
    }
    for cluster in clusters {
      let node = node ?? cluster.own
      let others = cluster.nodes.map(\.name).filter { $0 != node }
      let stores = cluster.stores.filter { $0.leader == node }.map(\.name)
      guard !others.isEmpty || stores.isEmpty else {
        throw CommandFailure(.refused, "no other server lives that shares the database \(cluster.name)")
      }
      for (index, store) in stores.enumerated() {
        let successor = others[index % others.count]
        try await client.moveStore(store, to: successor)
        output.bytes += Array("\(store)\t\(successor)\n".utf8)
        try output.flush()
      }
    }
  }
}

/// The servers that share a database, as a server reports them.
private struct Cluster {
  let name: String
  /// The name of the server that reports.
  let own: String
  let nodes: [(name: String, address: String)]
  let stores: [Store]

  struct Store {
    let name: String
    let leader: String?
    /// How old the server's copy of it may be, in milliseconds; nil if it has none.
    let staleness: Int64?
  }

  init(_ report: JSONValue) {
    name = report["database"]?.string ?? ""
    own = report["node"]?.string ?? ""
    nodes = (report["nodes"]?.array ?? []).map { ($0["name"]?.string ?? "", $0["address"]?.string ?? "") }
    stores = (report["stores"]?.array ?? []).map {
      Store(name: $0["name"]?.string ?? "", leader: $0["leader"]?.string, staleness: $0["staleness"]?.integer)
    }
  }
}
