// Options: defaults, file, environment and their order; bad values and unknown names are named; kedge.toml has all.
#include "kedge/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/options_load.hpp"
#include "base/options_values.hpp"
#include "base/removed_options.hpp"

namespace kedge::options_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A directory of its own per test, with a kedge.toml if one is wanted.
class OptionsTest : public testing::Test {
 protected:
  OptionsTest() : directory_(testing::TempDir() + "kedge-options-XXXXXX") {
    if (::mkdtemp(directory_.data()) == nullptr) ADD_FAILURE() << "no directory for the test";
  }
  ~OptionsTest() override { std::filesystem::remove_all(directory_); }

  void write_toml(const std::string& text, const std::string& name = "kedge.toml") const {
    std::ofstream(path(name)) << text;
  }
  [[nodiscard]] std::string path(const std::string& name = "kedge.toml") const { return directory_ + "/" + name; }
  [[nodiscard]] LoadedOptions load(const std::vector<std::string>& environment = {}) const {
    return load_options(environment, directory_);
  }
  [[nodiscard]] std::string failure(const std::vector<std::string>& environment = {}) const {
    const auto loaded = load(environment);
    if (!loaded.options.load_failure) return "no failure";
    EXPECT_EQ(loaded.options.load_failure->code, ErrorCode::invalid_argument);
    return to_string(*loaded.options.load_failure);
  }
  std::string directory_;
};

TEST_F(OptionsTest, WithoutFileAndEnvironmentAreTheDefaults) {
  const auto loaded = load({"HOME=/nowhere", "KEDGE_NODE=n7", "KEDGE_TEST_FULL=1"});
  ASSERT_FALSE(loaded.options.load_failure);
  for (const OptionField& field : option_fields()) {
    EXPECT_EQ(field.get(loaded.options), field.get(Options{})) << dotted_name(field);
    EXPECT_EQ(loaded.origin.at(dotted_name(field)), "default");
  }
}

TEST_F(OptionsTest, EnvironmentComesBeforeTheFileAndTheFileBeforeTheDefaults) {
  write_toml("run = 'ice'\n[store]\nkeep = 3\nquota_bytes = '2 MiB'\ndurable = true\n[comm]\ntimeout_s = 5\n");
  const auto loaded = load({"KEDGE_STORE_KEEP=4", "KEDGE_LOG_LEVEL=debug"});
  ASSERT_FALSE(loaded.options.load_failure) << to_string(*loaded.options.load_failure);
  EXPECT_EQ(loaded.options.run, "ice");
  EXPECT_EQ(loaded.options.store.keep, 4U);
  EXPECT_EQ(loaded.options.store.quota_bytes, 2U << 20U);
  EXPECT_TRUE(loaded.options.store.durable);
  EXPECT_EQ(loaded.options.comm.timeout_s, 5.0);
  EXPECT_EQ(loaded.options.log.level, LogLevel::debug);
  EXPECT_EQ(loaded.origin.at("store.keep"), "KEDGE_STORE_KEEP");
  EXPECT_EQ(loaded.origin.at("store.durable"), path() + ":5");
  EXPECT_EQ(loaded.origin.at("schedule.every"), "default");
}

TEST_F(OptionsTest, EveryFieldIsTakenFromTheEnvironment) {
  const std::map<std::string, std::string> values = {{"run", "r-1.x_Y"},
                                                     {"fingerprint", "input 7, v2"},
                                                     {"fingerprint_files", "/a file:b"},
                                                     {"deadline", "1764108000"},
                                                     {"start", "fresh"},
                                                     {"io", "direct"},
                                                     {"store.path", "/fast/{node}"},
                                                     {"store.keep", "7"},
                                                     {"store.quota_bytes", "4096"},
                                                     {"store.durable", "true"},
                                                     {"store.lock_timeout_s", "1.5"},
                                                     {"store.on_exit", "remove"},
                                                     {"store.copy_threads", "3"},
                                                     {"persistent.path", "/p"},
                                                     {"persistent.every", "5"},
                                                     {"persistent.keep", "2"},
                                                     {"persistent.mode", "0750"},
                                                     {"persistent.plain_routed", "true"},
                                                     {"persistent.bandwidth_limit", "1000000"},
                                                     {"persistent.retries", "5"},
                                                     {"persistent.trust", "group"},
                                                     {"redundancy.scheme", "xor"},
                                                     {"redundancy.set_size", "4"},
                                                     {"redundancy.parity", "3"},
                                                     {"redundancy.every", "3"},
                                                     {"pipeline.mode", "background"},
                                                     {"pipeline.max_pending", "3"},
                                                     {"pipeline.when_full", "fail"},
                                                     {"pipeline.cores", "0,2-3"},
                                                     {"pipeline.messages", "tcp"},
                                                     {"pipeline.interface", "ib0,10.1.0.0/16"},
                                                     {"redundancy.bandwidth_limit", "2000000"},
                                                     {"open.verify", "headers"},
                                                     {"open.chained", "true"},
                                                     {"open.other_ranks", "refuse"},
                                                     {"open.buffer_bytes", "2097152"},
                                                     {"schedule.every", "10"},
                                                     {"schedule.seconds", "60.5"},
                                                     {"schedule.overhead", "0.25"},
                                                     {"exit.signals", "SIGTERM:SIGUSR1"},
                                                     {"exit.margin_s", "60"},
                                                     {"exit.grace_s", "120"},
                                                     {"device.path", "buffers"},
                                                     {"device.snapshot", "true"},
                                                     {"topology.failure_domain", "env:RACK"},
                                                     {"comm.timeout_s", "9"},
                                                     {"log.level", "off"},
                                                     {"events.path", "/events/{node}.jsonl"},
                                                     {"events.max_bytes", "8192"}};
  std::vector<std::string> environment;
  for (const OptionField& field : option_fields()) {
    environment.push_back(variable_name(field) + "=" + values.at(dotted_name(field)));
  }
  const auto loaded = load(environment);
  ASSERT_FALSE(loaded.options.load_failure) << to_string(*loaded.options.load_failure);
  for (const OptionField& field : option_fields()) {
    EXPECT_EQ(field.get(loaded.options), values.at(dotted_name(field)));
    EXPECT_NE(field.get(loaded.options), field.get(Options{}));
    EXPECT_EQ(loaded.origin.at(dotted_name(field)), variable_name(field));
  }
}

TEST_F(OptionsTest, AnOptionThatWasRemovedSaysWhatToWrite) {
  write_toml("[store]\nio = 'direct'");
  EXPECT_THAT(failure(), HasSubstr(path() + ":2: there is no option store.io any more; set io (KEDGE_IO), which"));
  write_toml("");
  EXPECT_THAT(failure({"KEDGE_OPEN_FRESH=1"}),
              HasSubstr("there is no option KEDGE_OPEN_FRESH any more; set KEDGE_START=fresh in the environment of"));
  Options options;
  const auto refused = attempt([&] { set_option(options, "device.gds", "on"); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message,
            "there is no option device.gds any more; set device.path (KEDGE_DEVICE_PATH) to auto or gds");
  for (const OptionField& field : option_fields()) {
    EXPECT_FALSE(describe_removed_option(dotted_name(field))) << dotted_name(field);
    EXPECT_FALSE(describe_removed_variable(variable_name(field))) << variable_name(field);
  }
}

// A value that is left in a file would act on every start.
TEST_F(OptionsTest, AFileCannotSayHowOneStartGoes) {
  write_toml("start = 'fresh'");
  EXPECT_THAT(failure({}), AllOf(HasSubstr(path() + ":1: start = \"fresh\" would act on every start"),
                                 HasSubstr("KEDGE_START=fresh in the environment")));
  write_toml("start = 'continue'");
  EXPECT_EQ(load({"KEDGE_START=adopt_and_accept"}).options.start, StartMode::adopt_and_accept);
}

TEST_F(OptionsTest, NamedFileIsTakenInsteadOfTheOneInTheDirectory) {
  write_toml("run = 'here'");
  write_toml("run = 'named'", "other.toml");
  EXPECT_EQ(load({"KEDGE_CONFIG=" + path("other.toml")}).options.run, "named");
  EXPECT_EQ(load({"KEDGE_CONFIG="}).options.run, "here");
  EXPECT_THAT(failure({"KEDGE_CONFIG=" + path("none.toml")}),
              AllOf(HasSubstr("KEDGE_CONFIG"), HasSubstr(path("none.toml")), HasSubstr("No such file")));
}

TEST_F(OptionsTest, EmptyFileIsFineAndADirectoryIsNot) {
  write_toml("");
  EXPECT_EQ(failure(), "no failure");
  EXPECT_THAT(failure({"KEDGE_CONFIG=" + directory_}), HasSubstr("it must be a regular file"));
}

TEST_F(OptionsTest, BadValueNamesFileLineAndField) {
  write_toml("[store]\n\nkeep = 0\n");
  EXPECT_THAT(failure(), AllOf(HasSubstr(path() + ":3: store.keep must be a whole number from 1"), HasSubstr("\"0\"")));
  write_toml("[store]\nkeep = 'three'\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":2: store.keep must be a whole number from 1 to"));
  EXPECT_THAT(failure(), HasSubstr(", not 'three'"));
  write_toml("[store]\ndurable = 1\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":2: store.durable must be true or false, not 1"));
  write_toml("[store]\nkeep = { a = [1, 2] }\n");
  EXPECT_THAT(failure(), HasSubstr(", not { a = [ 1, 2 ] }"));
  write_toml("[comm]\ntimeout_s = -1.0\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":2: comm.timeout_s must be seconds, more than 0"));
  write_toml("run = 'a/b'\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":1: run must be 1 to 64 of"));
  write_toml("store = 'x'\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":1: store is a section"));
  write_toml("[store]\nkeep = = 1\n");
  EXPECT_THAT(failure(), AllOf(HasSubstr(path() + ":2: "), HasSubstr("not valid TOML")));
}

TEST_F(OptionsTest, BadValueNamesTheVariable) {
  EXPECT_THAT(failure({"KEDGE_STORE_ON_EXIT=delete"}),
              AllOf(HasSubstr("KEDGE_STORE_ON_EXIT: store.on_exit must be keep, remove_if_persistent or remove"),
                    HasSubstr("\"delete\"")));
  for (const std::string bad : {"", "-1", "1x", " 1", "4294967296", "1 KiB", "1.0"}) {
    EXPECT_THAT(failure({"KEDGE_STORE_KEEP=" + bad}), HasSubstr("KEDGE_STORE_KEEP")) << bad;
  }
  EXPECT_THAT(failure({"KEDGE_COMM_TIMEOUT_S=nan"}), HasSubstr("KEDGE_COMM_TIMEOUT_S"));
}

TEST_F(OptionsTest, RedundancyAndFailureDomainsTakeWhatIsMeantAlone) {
  for (const std::string scheme : {"auto", "single", "partner", "xor", "rs"}) {
    EXPECT_EQ(failure({"KEDGE_REDUNDANCY_SCHEME=" + scheme}), "no failure");
  }
  for (const std::string bad : {"", "automatic", "XOR", "xor_", "raid5"}) {
    EXPECT_THAT(failure({"KEDGE_REDUNDANCY_SCHEME=" + bad}), HasSubstr("auto, single, partner, xor or rs")) << bad;
  }
  for (const std::string members : {"2", "32"}) {
    EXPECT_EQ(failure({"KEDGE_REDUNDANCY_SET_SIZE=" + members}), "no failure");
  }
  for (const std::string bad : {"", "0", "1", "33", "-2", "4294967298"}) {
    EXPECT_THAT(failure({"KEDGE_REDUNDANCY_SET_SIZE=" + bad}), HasSubstr("a whole number from 2 to 32")) << bad;
  }
  for (const std::string parity : {"1", "4"}) EXPECT_EQ(failure({"KEDGE_REDUNDANCY_PARITY=" + parity}), "no failure");
  for (const std::string bad : {"", "0", "5", "-1"}) {
    EXPECT_THAT(failure({"KEDGE_REDUNDANCY_PARITY=" + bad}), HasSubstr("a whole number from 1 to 4")) << bad;
  }
  EXPECT_EQ(failure({"KEDGE_REDUNDANCY_EVERY=0"}), "no failure");
  for (const std::string bad : {"", "-1", "never", "18446744073709551616"}) {
    EXPECT_THAT(failure({"KEDGE_REDUNDANCY_EVERY=" + bad}), HasSubstr("a whole number, 0 or more")) << bad;
  }
  EXPECT_EQ(failure({"KEDGE_TOPOLOGY_FAILURE_DOMAIN=node"}), "no failure");
  for (const std::string bad : {"", "rack", "env", "env:", "Node", "env RACK"}) {
    EXPECT_THAT(failure({"KEDGE_TOPOLOGY_FAILURE_DOMAIN=" + bad}), HasSubstr("node or env:NAME")) << bad;
  }
  write_toml("[redundancy]\nscheme = 'xor'\nset_size = 33\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":3: redundancy.set_size must be a whole number from 2 to 32"));
}

TEST_F(OptionsTest, UnknownKeyIsAnErrorWithASuggestion) {
  write_toml("[store]\nkepe = 2\n");
  EXPECT_THAT(failure(), HasSubstr(path() + ":2: there is no option store.kepe; did you mean store.keep?"));
  write_toml("[stroe]\nkeep = 2\n");
  EXPECT_THAT(failure(), HasSubstr("no option stroe; did you mean store?"));
  write_toml("keep = 2\n");
  EXPECT_THAT(failure(), HasSubstr("did you mean store.keep?"));
  write_toml("[log]\nfountain = 2\n");
  EXPECT_THAT(failure(), HasSubstr("`kedge config` lists all options"));
  write_toml("[store.deeper]\nkeep = 2\n");
  EXPECT_THAT(failure(), HasSubstr("no option store.deeper"));
}

TEST_F(OptionsTest, UnknownVariableOfAKnownSectionIsAnErrorWithASuggestion) {
  EXPECT_THAT(failure({"KEDGE_STORE_PAHT=/x"}),
              HasSubstr("unknown environment variable KEDGE_STORE_PAHT; did you mean KEDGE_STORE_PATH?"));
  EXPECT_THAT(failure({"KEDGE_SOTRE_KEEP=2"}), HasSubstr("KEDGE_STORE_KEEP"));
  EXPECT_THAT(failure({"KEDGE_UNRELATED=1"}), HasSubstr("unknown environment variable KEDGE_UNRELATED"));
  EXPECT_EQ(failure({"KEDGE_NODE=n1", "KEDGE_TEST_FULL=1", "KEDGE_BUILD_JOBS=2"}), "no failure");
  // Module files of many systems set these for every package.
  EXPECT_EQ(failure({"KEDGE_ROOT=/opt", "KEDGE_DIR=/opt", "KEDGE_HOME=/opt", "KEDGE_VERSION=1"}), "no failure");
  EXPECT_EQ(failure({"KEDGE_PREFIX=/opt", "KEDGE_INC=/opt", "KEDGE_LIBDIR=/opt", "KEDGE_BASE=/opt"}), "no failure");
  EXPECT_EQ(failure({"KEDGE_LIBRARY=/opt/lib", "KEDGE_BINDIR=/opt/bin", "KEDGE_LICENSE=x"}), "no failure");
  // Kubernetes sets these in every container beside a service called kedge, or kedge-web.
  EXPECT_EQ(
      failure({"KEDGE_SERVICE_HOST=10.0.0.1", "KEDGE_SERVICE_PORT=80", "KEDGE_SERVICE_PORT_HTTP=80",
               "KEDGE_PORT=tcp://10.0.0.1:80", "KEDGE_PORT_80_TCP=tcp://10.0.0.1:80", "KEDGE_PORT_80_TCP_ADDR=10.0.0.1",
               "KEDGE_WEB_SERVICE_HOST=10.0.0.1", "KEDGE_WEB_PORT=x", "KEDGE_WEB_PORT_80_TCP_PROTO=tcp"}),
      "no failure");
  EXPECT_THAT(failure({"KEDGE_RNU=b"}), HasSubstr("did you mean KEDGE_RUN?"));
}

TEST_F(OptionsTest, FingerprintFilesAreAListOfPathsOrPathsWithColonsBetween) {
  using Paths = std::vector<std::string>;
  write_toml("fingerprint_files = ['input.nml', 'a mesh.dat']\n");
  EXPECT_EQ(load().options.fingerprint_files, (Paths{"input.nml", "a mesh.dat"}));
  EXPECT_EQ(load({"KEDGE_FINGERPRINT_FILES=:x::y z:"}).options.fingerprint_files, (Paths{"x", "y z"}));
  EXPECT_EQ(load({"KEDGE_FINGERPRINT_FILES="}).options.fingerprint_files, Paths{});
  for (const char* text : {"'input.nml'", "[7]", "['a:b']"}) {
    write_toml(std::string("fingerprint_files = ") + text);
    EXPECT_THAT(failure(), HasSubstr("fingerprint_files must be a list of paths")) << text;
  }
  write_toml("");
  EXPECT_THAT(failure({"KEDGE_FINGERPRINT=a\nb"}), HasSubstr("fingerprint must be one line"));
}

TEST_F(OptionsTest, ADeadlineIsATimeInAnySpellingOfToml) {
  const std::pair<const char*, const char*> spellings[] = {{"1764108000", "1764108000"},
                                                           {"'1764108000.5'", "1764108000.5"},
                                                           {"'2025-11-25T22:00:00+01:00'", "2025-11-25T22:00:00+01:00"},
                                                           {"2025-11-25T22:00:00Z", "2025-11-25T22:00:00Z"},
                                                           {"2025-11-25 22:00:00+01:00", "2025-11-25T22:00:00+01:00"},
                                                           {"'none'", "none"},
                                                           {"''", ""}};
  for (const auto& [written, value] : spellings) {
    write_toml(std::string("deadline = ") + written);
    EXPECT_EQ(failure(), "no failure") << written;
    EXPECT_EQ(load().options.deadline, value);
  }
  for (const char* wrong : {"2025-11-25", "true", "-5", "[1764108000]", "'tomorrow'", "1764108000.5"}) {
    write_toml(std::string("deadline = ") + wrong);
    EXPECT_THAT(failure(), HasSubstr("deadline must be seconds since 1970")) << wrong;
  }
  write_toml("");
  EXPECT_EQ(load({"KEDGE_DEADLINE=2025-11-25T22:00:00Z"}).options.deadline, "2025-11-25T22:00:00Z");
  EXPECT_THAT(failure({"KEDGE_DEADLINE=5 pm"}), HasSubstr("not \"5 pm\""));
}

TEST_F(OptionsTest, SignalsAreAListOfNames) {
  write_toml("[exit]\nsignals = ['SIGTERM', 'SIGUSR1']");
  EXPECT_EQ(load().options.exit.signals, (std::vector<std::string>{"SIGTERM", "SIGUSR1"}));
  EXPECT_EQ(load({"KEDGE_EXIT_SIGNALS=SIGHUP"}).options.exit.signals, std::vector<std::string>{"SIGHUP"});
  for (const char* wrong : {"SIGKILL", "TERM", "SIGTERM,SIGUSR1", "15"}) {
    EXPECT_THAT(failure({std::string("KEDGE_EXIT_SIGNALS=") + wrong}), HasSubstr("exit.signals must be a list"))
        << wrong;
  }
}

TEST_F(OptionsTest, SizesTakeBinarySuffixes) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("3KiB"), 3072U);
  EXPECT_EQ(parse_size("5 GiB"), 5ULL << 30U);
  EXPECT_EQ(parse_size("16777215TiB"), 16777215ULL << 40U);
  for (const std::string_view bad :
       {"", "KiB", "1.5GiB", "1GB", "-1", "16777216TiB", "18446744073709551616", "1  KiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST_F(OptionsTest, TemplateHoldsEveryFieldWithItsDefault) {
  const std::string file = std::string(KEDGE_SOURCE_DIR) + "/share/kedge/kedge.toml";
  const auto loaded = load({"KEDGE_CONFIG=" + file});
  ASSERT_FALSE(loaded.options.load_failure) << to_string(*loaded.options.load_failure);
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  for (const OptionField& field : option_fields()) {
    EXPECT_THAT(loaded.origin.at(dotted_name(field)), HasSubstr("kedge.toml:")) << "missing: " << dotted_name(field);
    EXPECT_EQ(field.get(loaded.options), field.get(Options{})) << dotted_name(field);
    EXPECT_THAT(text, HasSubstr(variable_name(field)));
  }
}

TEST_F(OptionsTest, CheckFindsWhatAProgramSetWrong) {
  EXPECT_EQ(check_options(Options{}), std::nullopt);
  const auto problem = [](auto change) {
    Options options;
    change(options);
    const auto failure = check_options(options);
    return failure ? to_string(*failure) : "no failure";
  };
  EXPECT_THAT(problem([](Options& o) { o.run = ".hidden"; }), HasSubstr("option run must be"));
  EXPECT_THAT(problem([](Options& o) { o.run = std::string(65, 'a'); }), HasSubstr("option run must be"));
  EXPECT_EQ(problem([](Options& o) { o.run = std::string(64, 'a'); }), "no failure");
  EXPECT_THAT(problem([](Options& o) { o.store.keep = 0; }), HasSubstr("option store.keep must be"));
  EXPECT_THAT(problem([](Options& o) { o.store.lock_timeout_s = -0.1; }), HasSubstr("store.lock_timeout_s"));
  EXPECT_THAT(problem([](Options& o) { o.comm.timeout_s = std::numeric_limits<double>::infinity(); }),
              HasSubstr("comm.timeout_s"));
  EXPECT_THAT(problem([](Options& o) { o.persistent.path.clear(); }), HasSubstr("persistent.path"));
  for (const char* mode : {"", "0777", "0577", "755x", "01755", "-1"}) {
    EXPECT_THAT(problem([&](Options& o) { o.persistent.mode = mode; }), HasSubstr("persistent.mode")) << mode;
  }
  for (const char* mode : {"0700", "755", "0775"}) {
    EXPECT_EQ(problem([&](Options& o) { o.persistent.mode = mode; }), "no failure") << mode;
  }
  EXPECT_THAT(problem([](Options& o) { o.store.path = std::string("a\0b", 3); }), HasSubstr("store.path"));
  EXPECT_THAT(problem([](Options& o) { o.redundancy.scheme = static_cast<Scheme>(9); }),
              HasSubstr("redundancy.scheme"));
  EXPECT_THAT(problem([](Options& o) { o.redundancy.set_size = 1; }), HasSubstr("redundancy.set_size"));
  EXPECT_THAT(problem([](Options& o) { o.topology.failure_domain = "env:"; }), HasSubstr("topology.failure_domain"));
  EXPECT_THAT(problem([](Options& o) { o.open.verify = static_cast<Verify>(9); }), HasSubstr("open.verify"));
}

TEST_F(OptionsTest, DigestSeesEveryDifferenceThatMatters) {
  const auto differing = [](const Options& a, const Options& b) {
    const auto left = option_digests(a);
    const auto right = option_digests(b);
    std::set<std::string> names;
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].name, right[i].name);
      if (left[i].hash != right[i].hash) names.insert(left[i].name);
    }
    return names;
  };
  Options changed;
  changed.store.path = "/elsewhere";
  changed.deadline = "none";
  changed.log.level = LogLevel::off;
  changed.pipeline.cores = "1";
  EXPECT_TRUE(differing(Options{}, changed).empty());  // these may differ
  changed.schedule.every = 2;
  changed.comm.timeout_s = 300.5;
  EXPECT_EQ(differing(Options{}, changed), (std::set<std::string>{"schedule.every", "comm.timeout_s"}));
  EXPECT_EQ(option_digests(Options{}).size(), option_fields().size() - 4);
}

}  // namespace
}  // namespace kedge::options_test
