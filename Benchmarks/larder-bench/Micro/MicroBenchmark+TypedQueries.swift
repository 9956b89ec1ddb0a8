import Documents
import TypedQueries

extension MicroBenchmark {
  /// Making requests with key paths, and lowering them to queries.
  static var typedQueries: [MicroBenchmark] {
    [
      MicroBenchmark(name: "typed request: lower 3 conditions, a sort and a limit") { _ in
        { count in
          for number in 0..<count {
            let filter: Filter<Volume> = \Volume.price == number && \Volume.title > "a" || \Volume.isNew == true
            keep(try? Volume.all.where(filter).sort(\.title).limit(20).query)
          }
        }
      },
      MicroBenchmark(name: "raw predicate: parse 3 conditions") { _ in
        { count in
          for _ in 0..<count { keep(try? Selector(predicate: "price = 3 AND title > 'a' OR isNew = TRUE")) }
        }
      },
    ]
  }

  private struct Volume: Codable, Queryable {
    var title: String
    var price: Int
    var isNew: Bool
  }
}
