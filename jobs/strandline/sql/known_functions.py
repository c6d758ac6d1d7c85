"""Sets of Spark SQL's built-in functions, by what their results depend on.

A test on Spark compares these sets with every function of `SHOW FUNCTIONS`.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXACT_SHARE = "percentile(x, 0.5)"
_EXACT_NUMBER = "count(DISTINCT x), or approx_count_distinct(x)"
_SUMS = "sum(x) of each number by itself"
_OVER_TUPLES = "sum(x) by a key of its own"
_SORTED = "array_sort(collect_list(x)), or array_sort(collect_list(struct(y, x)))"
_LISTED = "listagg(x) WITHIN GROUP (ORDER BY x), or ORDER BY y, x"
_BY_VALUE = "count(*) in windows that have the value in their key"

ORDER_DEPENDENT = {
    "first": "min_by(x, arrival)",
    "first_value": "min_by(x, arrival)",
    "last": "max_by(x, arrival)",
    "last_value": "max_by(x, arrival)",
    "any_value": "min(x)",
    "collect_list": _SORTED,
    "array_agg": _SORTED,
    "collect_set": "array_sort(collect_set(x))",
    "listagg": _LISTED,
    "string_agg": _LISTED,
    "mode": "mode() WITHIN GROUP (ORDER BY x)",
    "approx_percentile": _EXACT_SHARE,
    "percentile_approx": _EXACT_SHARE,
    "histogram_numeric": "count_if(x < 10) for each bar",
    "approx_top_k": _BY_VALUE,
    "approx_top_k_accumulate": _BY_VALUE,
    "approx_top_k_combine": _BY_VALUE,
    "hll_sketch_agg": _EXACT_NUMBER,
    "hll_union_agg": _EXACT_NUMBER,
    "kll_sketch_agg_bigint": _EXACT_SHARE,
    "kll_sketch_agg_double": _EXACT_SHARE,
    "kll_sketch_agg_float": _EXACT_SHARE,
    "kll_merge_agg_bigint": _EXACT_SHARE,
    "kll_merge_agg_double": _EXACT_SHARE,
    "kll_merge_agg_float": _EXACT_SHARE,
    "tuple_sketch_agg_double": _OVER_TUPLES,
    "tuple_sketch_agg_integer": _OVER_TUPLES,
    "tuple_union_agg_double": _OVER_TUPLES,
    "tuple_union_agg_integer": _OVER_TUPLES,
    "tuple_intersection_agg_double": _OVER_TUPLES,
    "tuple_intersection_agg_integer": _OVER_TUPLES,
    "vector_avg": _SUMS,
    "vector_sum": _SUMS,
}
"""Aggregates whose result may change with the order of the records or with their partitioning; and
what to write instead."""
SORTABLE = frozenset({"array_agg", "collect_list", "collect_set"})
"""Order-dependent aggregates that are allowed directly inside a call of one of `SORTERS`, without a
comparator: what it takes for equal would stay in the order of the records."""
SORTERS = frozenset({"array_sort", "sort_array"})
ORDERED_WITHIN_GROUP = frozenset({"listagg", "mode", "string_agg"})
"""Order-dependent aggregates that are allowed with WITHIN GROUP (ORDER BY …) of their own value."""

AGGREGATES = frozenset(ORDER_DEPENDENT) | _names(
    """
any approx_count_distinct avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
bitmap_or_agg bool_and bool_or corr count count_if count_min_sketch covar_pop covar_samp
every kurtosis max max_by mean median min min_by percentile percentile_cont percentile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp sum
theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp
variance
"""
)
"""Functions of many records."""

CHANCE = _names(
    """
input_file_block_length input_file_block_start input_file_name java_method
monotonically_increasing_id rand randn random randstr reflect shuffle spark_partition_id
try_reflect uniform uuid
"""
)
"""Functions that are random, depend on a row's file or partition, or call unknown code."""
CLOCKS = _names("curdate current_date current_time current_timestamp localtimestamp now")
"""Functions that read the clock."""
OF_THE_SESSION = _names(
    """
current_catalog current_database current_path current_schema current_user session_user user
version
"""
)
"""Functions whose result depends on the user, the session or the machine."""
WITHOUT_PARENTHESES = _names(
    "current_date current_time current_timestamp current_user localtimestamp session_user user"
)
"""Functions that can be called without parentheses if no column has their name."""
CHANGED_BY_ARGUMENTS = {("unix_timestamp", 0): CLOCKS, ("aes_encrypt", 2): CHANCE}
"""Functions that read the clock, or are random, with a certain number of arguments."""
OTHER_ROWS = _names(
    """
explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
session_window stack variant_explode variant_explode_outer window
"""
)
"""Functions that change the number of rows: `window` drops rows without a time."""
OF_NEIGHBOURS = _names("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
"""Functions that need OVER (…)."""
UNITS_FIRST = _names("date_add date_diff dateadd datediff timestampadd timestampdiff")
"""Functions whose first of three arguments is the name of a unit, and not a column."""
CONVERSIONS = _names(
    """
bigint binary boolean date decimal double float int smallint string time timestamp tinyint
"""
)
"""Functions with the name of the type to which they cast."""
_OF_A_ROW = CONVERSIONS | _names(
    """
abs acos acosh add_months aes_decrypt aes_encrypt aggregate and approx_top_k_estimate array
array_append array_compact array_contains array_distinct array_except array_insert
array_intersect array_join array_max array_min array_position array_prepend array_remove
array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh
assert_true atan atan2 atanh base64 bin bit_count bit_get bit_length bitmap_bit_position
bitmap_bucket_number bitmap_count bround btrim cardinality cast cbrt ceil ceiling char
char_length character_length chr coalesce collate collation concat concat_ws contains conv
convert_timezone cos cosh cot crc32 csc current_timezone date_add date_diff date_format
date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
dayofmonth dayofweek dayofyear decode degrees div e element_at elt encode endswith equal_null
exists exp expm1 extract factorial filter find_in_set flatten floor forall format_number
format_string from_avro from_csv from_json from_protobuf from_unixtime from_utc_timestamp
from_xml get get_json_object getbit greatest hash hex hll_sketch_estimate hll_union hour
hypot if ifnull ilike initcap instr is_valid_utf8 is_valid_variant is_variant_null isnan
isnotnull isnull json_array_length json_object_keys kll_sketch_get_n_bigint
kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint
kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
kll_sketch_to_string_double kll_sketch_to_string_float last_day lcase least left len length
levenshtein like ln locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz
make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter
map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute mod month
monthname months_between named_struct nanvl negative next_day not nullif nullifzero nvl nvl2
octet_length or overlay parse_json parse_url pi pmod position positive pow power printf
quarter quote radians raise_error reduce regexp regexp_count regexp_extract
regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace
reverse right rint rlike round rpad rtrim schema_of_avro schema_of_csv schema_of_json
schema_of_variant schema_of_xml sec second sentences sequence sha sha1 sha2 shiftleft
shiftright shiftrightunsigned sign signum sin sinh size slice sort_array soundex space split
split_part sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith
str_to_map struct substr substring substring_index tan tanh theta_difference
theta_intersection theta_sketch_estimate theta_union time_bucket time_diff time_from_micros
time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc
timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_avro
to_binary to_char to_csv to_date to_json to_number to_protobuf to_time to_timestamp
to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
to_variant_object to_xml transform transform_keys transform_values translate trim trunc
try_add try_aes_decrypt try_divide try_element_at try_make_interval try_make_timestamp
try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json
try_parse_url try_subtract try_to_binary try_to_date try_to_number try_to_time
try_to_timestamp try_url_decode try_validate_utf8 try_variant_get tuple_difference_double
tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
tuple_intersection_theta_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer
tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
tuple_sketch_theta_integer tuple_union_double tuple_union_integer tuple_union_theta_double
tuple_union_theta_integer typeof ucase unbase64 unhex unix_date unix_micros unix_millis
unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 variant_get
vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize
weekday weekofyear width_bucket window_time xpath xpath_boolean xpath_double xpath_float
xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
"""
)
"""Functions whose result depends on their arguments only."""

KNOWN = (
    _OF_A_ROW | AGGREGATES | CHANCE | CLOCKS | OF_THE_SESSION | OTHER_ROWS | OF_NEIGHBOURS
)  # fmt: skip
"""All known functions; whether another function is allowed is asked of the engine."""
