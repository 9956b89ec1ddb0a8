import Documents
import Foundation

extension MicroBenchmark {
  /// Work on documents: on orders of 1 KiB, and on small documents about persons; see `DocumentSamples`.
  static var documents: [MicroBenchmark] {
    [
      MicroBenchmark(name: "document: validate 1 KiB") { settings in
        each(of: orders(settings)) { keep(try? Documents.JSON.validate($0.span)) }
      },
      MicroBenchmark(name: "document: extract 3 paths of 1 KiB") { settings in
        let selector = try CompiledSelector(Selector(parsing: DocumentOrder.selector))
        return each(of: orders(settings)) { keep(selector.matches($0.span)) }
      },
      MicroBenchmark(name: "document: decode 1 KiB with JSONDecoder") { settings in
        let decoder = JSONDecoder()
        return each(of: orders(settings).map { Data($0) }) { keep(try? decoder.decode(DocumentOrder.self, from: $0)) }
      },
      MicroBenchmark(name: "document: match age and pet") { settings in
        let selector = try CompiledSelector(Selector(parsing: DocumentsBench.ageAndPet))
        return each(of: persons(4_096, settings)) { keep(selector.matches($0)) }
      },
      MicroBenchmark(name: "document: find 20 of 100,000 by two fields, per document") { settings in
        let query = DocumentQuery(sort: DocumentsBench.sort, limit: DocumentsBench.page)
        let documents = persons(DocumentsBench.persons, settings)
        return { count in
          for start in stride(from: 0, to: count, by: documents.count) {
            keep(try? documents.prefix(count - start).find(query).documents)
          }
        }
      },
    ]
  }

  private static func orders(_ settings: MicroSettings) -> [[UInt8]] {
    var samples = DocumentSamples(seed: settings.seed)
    return (0..<DocumentsBench.orders).map { Array(samples.order($0).utf8) }
  }

  private static func persons(_ count: Int, _ settings: MicroSettings) -> [Documents.Document] {
    var samples = DocumentSamples(seed: settings.seed)
    return samples.persons(count).enumerated().map { Documents.Document($1, id: "\($0)", revision: 1) }
  }

  /// Returns work on one document of a sample after the other.
  @inline(__always)
  private static func each<T>(of sample: [T], _ body: @escaping (T) -> Void) -> (Int) -> Void {
    { count in
      var next = 0
      for _ in 0..<count {
        body(sample[next])
        next = next + 1 == sample.count ? 0 : next + 1
      }
    }
  }
}
