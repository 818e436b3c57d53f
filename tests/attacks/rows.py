"""The table of attacks and faults, in its order: what table.py runs. A row names the tests of the runner that hold it, and as its edits the faults of
tests/faults that take its defence away: each of them names a test of the row, which `make defences` shows to fail without the defence.

Who attacks: OFF an off-path spoofer, REC a recorder on the path, MC a malicious client with a valid token, MS a malicious server, TT a token
thief, NB a noisy neighbour, ENV the host, the operating system or the application. A star marks a defect that was reproduced in an existing
implementation of the protocol. Rows are simulated ("d"), run over loopback sockets ("r"), or both ("dr")."""

import collections

COUNT = 92
ELSEWHERE = (91, 92, 93)  # of the gateway and the backends
Row = collections.namedtuple("Row", "number mark by attack kind tests edits also")
ROWS = []


def row(number, by, attack, kind, tests, edits, also=(), star=False):
    ROWS.append(Row(number, "*" if star else " ", by, attack, kind, tests, edits, also))


# ---- parsing and packets ----

row(1, "REC", "each bit of every byte of all seven types is flipped: the state stays as it was", "d",
    ["threat_1_flipped_bits_leave_the_state_as_it_was", "hostile_1_flipped_bits_to_the_server", "hostile_1_flipped_bits_to_the_client",
     "packet_flipped_bits_are_refused", "token_tampered_private_parts_do_not_open"],
    ["row_01_verdict", "row_01_state"])
row(2, "OFF", "cut to every length: nothing is read past the end", "d",
    ["threat_2_cut_datagrams_are_not_read_past_their_end", "hostile_2_3_every_length", "packet_parse_reads_nothing_past_the_end",
     "packet_cut_and_extended_are_refused"],
    ["row_02"], ["make san"])
row(3, "OFF", "longer by 1 to 1500 bytes", "dr",
    ["threat_3_longer_datagrams", "threat_3_longer_datagrams_over_a_socket", "packet_cut_and_extended_are_refused"],
    ["row_03", "row_03_requests"])
row(4, "OFF", "empty datagrams between real ones, 1,200 a second", "r",
    ["threat_4_empty_datagrams_at_1200_a_second", "real_empty_and_oversized_datagrams"],
    ["row_04"], star=True)
row(5, "OFF", "oversized datagrams between real ones; message-too-large errors", "r",
    ["threat_5_oversized_datagrams_at_1200_a_second", "threat_5_message_too_large_errors", "real_empty_and_oversized_datagrams"],
    ["row_05", "row_05_errors"])
row(6, "OFF", "all 256 prefix bytes: what can not be is refused without a decryption", "d",
    ["threat_6_every_prefix_byte_with_a_size_that_suits_it", "hostile_6_every_prefix_byte", "packet_every_prefix_direction_and_size"],
    ["row_06_types", "row_06_lengths", "row_06_direction"])
row(7, "REC", "another prefix, version or protocol id over the same ciphertext, 7 x 7", "d",
    ["threat_7_the_matrix_of_prefixes_and_what_was_sealed_under_them", "packet_ingredients_are_authenticated"],
    ["row_07_prefix", "row_07_version", "row_07_protocol_id"])
row(8, "MC", "sequences in more bytes than needed are accepted", "d",
    ["packet_over_long_sequences", "quirk_sequences_in_more_bytes_than_needed"],
    ["row_08"])
row(9, "REC", "a side's own packets are reflected to it", "d",
    ["threat_9_reflected_packets_with_fitting_numbers", "hostile_9_reflected_packets"],
    ["row_09_client", "row_09_server"])
row(10, "MC MS", "every wrong body size, 0 to 1300, behind a valid tag", "d",
    ["threat_10_every_size_behind_a_valid_tag", "hostile_10_wrong_body_sizes", "packet_body_sizes_behind_a_valid_tag"],
    ["row_10"])
row(11, "MS", "keep-alives that name impossible slots", "d",
    ["threat_11_the_numbers_of_later_keep_alives_are_not_used", "hostile_11_keep_alives_with_odd_numbers"],
    ["row_11"])
row(12, "MS MC", "tokens of 0 or 33 addresses, type 0 or 3, created after they expire, port 0", "d",
    ["token_public_part_grid", "token_private_part_grid", "token_create_and_expire_may_be_equal", "invalid_tokens", "drop_TOKEN_MALFORMED"],
    ["row_12_none", "row_12_many", "row_12_type", "row_12_port", "row_12_times"])

# ---- replay and nonces ----

row(13, "REC", "replay in a session, at the window's edges", "d",
    ["replay_rows", "replay_full_windows", "replay_random_against_a_model", "hostile_13_the_replay_window", "drop_REPLAYED"],
    ["row_13_edge", "row_13_clearing", "drop_REPLAYED"])
row(14, "MC", "sequences 0, 2^63 and 2^64 - 1; a jump beyond 2^32; a sender near the end of its numbers", "d",
    ["replay_rows", "replay_sequence_zero", "hostile_14_sequences_near_the_ends", "decision_5_a_jump_of_more_than_2_32_is_refused",
     "defence_1_sequences_end_and_do_not_wrap"],
    ["row_14", "decision_05_jump", "decision_01_client_sequence_ends", "decision_01_slot_sequence_ends"], star=True)
row(15, "OFF", "a forged sequence far ahead", "d",
    ["hostile_15_16_the_window_moves_only_for_authentic_packets", "packet_flipped_bits_are_refused", "replay_seen_changes_nothing"],
    ["row_15"])
row(16, "REC", "a copy from another address comes first", "d",
    ["hostile_15_16_the_window_moves_only_for_authentic_packets"],
    ["row_16"])
row(17, "REC", "a whole recorded session is replayed after it ended", "d",
    ["hostile_17_23_a_recorded_session_is_replayed_in_vain"],
    ["row_17"], star=True)
row(18, "MC REC", "reconnecting with the same token", "d",
    ["threat_18_reconnecting_with_the_same_token", "decision_4_a_token_connects_once", "decision_13_a_second_connect_with_a_used_token_is_refused"],
    ["row_18", "row_18_client", "decision_01_consumed_tokens", "decision_13_second_connect"], star=True)
row(19, "ENV", "connect twice with one token on one client object", "d",
    ["threat_19_connecting_twice_with_one_token", "decision_1_the_clients_sequence_never_goes_back"],
    ["row_19", "decision_01_client_counter_at_connect"])
row(20, "REC", "one token at 32 servers", "d",
    ["threat_20_one_token_at_32_servers", "decision_1_two_servers_of_one_token_share_no_nonce"],
    ["row_20_22_global_sequence", "row_20_client", "decision_01_server_base"], star=True)
row(21, "REC", "the server is killed and restarted at every step of a handshake", "d",
    ["threat_21_a_server_killed_at_every_step", "decision_1_restart_of_the_server_at_every_step",
     "decision_1_two_lives_of_a_server_share_no_nonce",
     "hostile_21_a_connected_client_does_not_take_the_old_token_to_a_new_life"],
    ["row_20_22_global_sequence", "decision_01_base_is_random", "decision_13_second_connect"])
row(22, "ENV", "stop and start of one server object", "d",
    ["hostile_22_stop_and_start_in_the_middle_of_a_handshake", "decision_1_the_servers_global_sequence_is_random_in_the_upper_half"],
    ["row_20_22_global_sequence"])
row(23, "REC", "replay after a timeout", "d",
    ["hostile_17_23_a_recorded_session_is_replayed_in_vain"],
    ["row_17"])
row(24, "REC", "an old response on a fresh handshake", "d",
    ["threat_24_a_recorded_response_in_a_new_handshake", "hostile_24_an_old_response_on_a_fresh_handshake",
     "decision_2_a_kept_challenge_of_an_earlier_handshake_is_refused"],
    ["row_24", "decision_02_first_challenge"])
row(25, "REC", "recorded denials and goodbyes of another session", "d",
    ["hostile_25_denials_and_goodbyes_of_another_session"],
    ["row_25"])
row(26, "ENV", "the unix clock steps back, or a day forward and back", "d",
    ["threat_26_a_clock_that_steps_back", "decision_4_a_clock_that_steps_reopens_nothing", "a_day_forward_and_back_locks_nobody_out",
     "a_day_forward_long_enough_for_tokens_to_expire_locks_nobody_out"],
    ["row_26", "decision_04_mark_at_purge", "decision_04_no_purge_by_the_clock"])

# ---- tokens, slots, resources ----

row(27, "TT", "a used token from another address", "d",
    ["hostile_27_a_used_token_from_another_address"],
    ["decision_01_consumed_tokens"])
row(28, "TT REC", "copies of a request from elsewhere, 2 and 4 a second; the whole token used first", "d",
    ["hostile_28_copies_at_2_a_second", "hostile_28_copies_at_4_a_second", "hostile_28_copies_behind_the_owner",
     "hostile_28_who_holds_the_whole_token_first_wins"],
    ["row_28", "decision_03_identified_by_token_alone"])
row(29, "MC", "the challenge of one client presented with another's token", "d",
    ["decision_2_challenge_answers_only_for_its_token", "decision_2_challenge_is_bound_to_the_token_even_for_one_player_and_address",
     "decision_2_challenge_is_bound_to_the_address", "defence_2_every_part_of_a_challenge_is_compared"],
    ["row_29", "decision_02_challenge_bind", "decision_02_challenge_client_id"], star=True)
row(30, "MC", "thrown out, back with a kept challenge", "d",
    ["hostile_30_a_kept_challenge_after_a_kick"],
    ["row_30"])
row(31, "MC", "more used tokens than the record holds", "d",
    ["decision_4_a_full_record_refuses_up_to_its_mark", "defence_4_the_earliest_newcomer_moves_the_mark", "table_used_against_a_model"],
    ["decision_04_mark_when_full", "decision_04_mark_of_the_newcomer"])
row(32, "MC", "more pending handshakes than the table holds", "d",
    ["hostile_32_34_ten_thousand_half_open_handshakes", "decision_3_a_full_table_gives_way_at_its_oldest_entry"],
    ["row_32", "decision_03_full_table"])
row(33, "MC", "tokens asked for with the victim's address while it connects", "d",
    ["threat_33_a_victim_among_three_tokens_at_any_rate", "hostile_33_two_tokens_with_the_victims_source",
     "hostile_33_four_tokens_with_the_victims_source"],
    ["row_33", "row_33_oldest"])
row(34, "MC", "10,000 half-open handshakes of tokens without timeout", "d",
    ["hostile_32_34_ten_thousand_half_open_handshakes", "decision_3_a_pending_handshake_ends"],
    ["row_34", "decision_03_pending_ends"])
row(35, "MC", "timeouts of 0, -1 and 2^31 - 1", "d",
    ["decision_3_a_pending_handshake_ends", "decision_3_an_unconfirmed_slot_ends", "timeout_of_0_is_none", "timeout_of_minus_1_is_none",
     "timeout_of_int_min_is_none", "timeout_of_int_max_is_long"],
    ["row_35", "decision_03_unconfirmed_without_timeout", "decision_03_unconfirmed_60"])
row(36, "MC", "a second token with a connected client's id, in both modes", "d",
    ["decision_10_is_opt_in", "drop_CLIENT_ID_CONNECTED", "decision_10_a_newer_token_takes_over_the_slot",
     "decision_10_also_from_the_same_address", "decision_10_not_with_a_token_that_expires_earlier"],
    ["decision_10_opt_in", "decision_10_after_the_challenge"])
row(37, "OFF REC", "denials reflected to a spoofed address: 25 bytes for 1078", "d",
    ["hostile_37_39_denials_and_recorded_handshakes_do_not_amplify"],
    ["decision_08_size_of_a_denial"])
row(38, "OFF", "amplification: bytes out for each byte in, for every address", "d",
    ["threat_38_no_address_gets_more_than_its_share", "decision_8_no_amplification_before_a_challenge_is_answered"],
    ["row_38", "decision_08_one_answer"])
row(39, "REC", "a recorded handshake as an amplifier", "d",
    ["threat_39_a_recorded_handshake_is_no_amplifier", "hostile_37_39_denials_and_recorded_handshakes_do_not_amplify"],
    ["row_17"], star=True)
row(40, "MC", "100,000 payloads from one client into its queue", "d",
    ["threat_40_a_hundred_thousand_payloads_fill_one_queue", "decision_6_a_flooding_client_fills_only_its_own_queue"],
    ["row_40", "row_40_counts"])
row(41, "MC", "one connected client floods: the others keep 99 %", "dr",
    ["threat_41_the_others_are_heard_beside_a_flood", "threat_41_the_others_are_heard_beside_a_flood_over_a_socket",
     "decision_6_a_flooding_client_fills_only_its_own_queue"],
    ["row_41"])
row(42, "NB", "a flood while updating: p99.9 of an update below 2 ms of thread time, 64 slots", "r",
    ["threat_42_updates_are_bounded_under_a_flood", "decision_6_one_update_spends_its_budget_and_returns"],
    ["row_42", "decision_06_server_budget"], ["make bench-sockets"], star=True)
row(43, "OFF", "an IPv4 flood against IPv6 players of a dual-stack server", "r",
    ["socket_dual_serves_both_in_turn"],
    ["row_43"])
row(44, "OFF", "what each kind of junk costs", "d",
    ["threat_44_what_each_kind_of_junk_costs", "decision_7_what_needs_no_cryptography_is_refused_before_any",
     "defence_7_refused_tokens_are_not_decrypted"],
    ["row_44", "row_44_forged", "decision_07_replay_before_decryption", "decision_07_expiry_before_decryption"],
    ["make bench", "make instructions"], star=True)

# ---- environment and secrets ----

row(45, "OFF", "IPv4-mapped IPv6, scoped link-local: one form", "d",
    ["threat_45_every_way_to_write_a_place", "hostile_45_mapped_addresses_have_one_form", "address_mapped_is_ipv4", "token_mapped_addresses",
     "socket_system_addresses"],
    ["row_45", "row_45_arrival", "row_45_scope"])
row(46, "OFF", "source port 0", "d",
    ["drop_SOURCE_PORT_ZERO"],
    ["drop_SOURCE_PORT_ZERO"])
row(47, "MS MC", "memory disclosed in padding", "d",
    ["threat_47_nothing_of_former_memory_leaves", "hostile_47_two_clients_see_no_memory_of_each_other", "token_padding_is_zero",
     "quirk_a_generated_token_byte_by_byte"],
    ["row_47", "row_47_keep_alive"], ["make msan"])
row(48, "NB", "keys left in memory", "d",
    ["decision_9_keys_are_wiped", "defence_9_a_clients_keys_end_with_its_session", "defence_9_what_is_given_back_is_empty",
     "defence_9_the_challenge_key_ends_with_the_start", "defence_9_replaced_private_keys_are_wiped", "defence_9_user_data_are_wiped",
     "received_payloads_are_wiped_at_destroy"],
    ["decision_09_slot", "decision_09_pending", "decision_09_client_session", "decision_09_memory_given_back"], ["make erase"])
row(49, "OFF", "branches that depend on a secret", "d",
    ["defence_9_secrets_are_compared_in_constant_time"],
    ["decision_09_constant_time"], ["make ct"])
row(50, "MC", "control characters on their way into the log", "d",
    ["threat_50_strange_addresses_in_the_log", "hostile_50_control_characters_do_not_reach_the_log", "platform_log_escapes_every_byte", "token_info_names_foreign_versions"],
    ["row_50", "row_50_info"], star=True)
row(51, "ENV", "allocation n fails, for every n", "d",
    ["client_create_when_allocation_n_fails", "server_create_and_start_when_allocation_n_fails", "simulator_when_allocation_n_fails"],
    ["row_51_client", "row_51_server"], ["make torture"])
row(52, "ENV", "system call n fails, with each of eight errors", "d",
    ["threat_52_the_nth_call_of_the_network_fails", "socket_system_calls_fail", "socket_errors_are_judged", "hostile_52_a_socket_that_misbehaves"],
    ["row_05_errors", "row_52_client", "row_52_counted", "decision_06_interrupted"], ["make torture"])
row(53, "ENV", "time stands still, -3600, +1e9, NaN, infinities", "d",
    ["threat_53_odd_times", "decision_12_the_clock_adds_only_positive_finite_steps", "decision_12_a_jump_of_a_billion_seconds_costs_one_pass",
     "odd_times_at_create_and_before_connect", "platform_clock_survives_every_double"],
    ["row_53_back", "row_53_finite", "row_53_still", "decision_12_one_pass"], star=True)
row(54, "ENV", "a client is created, idles for an hour, then connects", "d",
    ["a_client_that_idled_for_an_hour_connects"],
    ["decision_11_clocks"], star=True)
row(55, "ENV", "file descriptor 0 is free and becomes the socket", "r",
    ["real_file_descriptor_0", "socket_on_file_descriptor_zero"],
    ["row_55"], star=True)
row(56, "ENV", "every function from every callback", "d",
    ["every_function_from_the_change_callbacks", "every_function_from_the_drop_callbacks", "every_function_from_the_loopback_callbacks",
     "every_function_from_the_log_callbacks", "every_function_from_the_networks_send", "every_function_from_the_networks_receive",
     "every_function_from_the_unix_time_callbacks", "admit_while_any_function_is_called", "storm_every_function_from_every_callback",
     "threat_56_ends_wait_for_the_outermost_call", "threat_56_a_client_that_is_updated_and_destroyed_by_its_callback"],
    ["row_56_update", "row_56_stop", "row_56_client"], star=True)
row(57, "MC", "tokens that expire now, never, at 0, at 2^64 - 1", "d",
    ["threat_57_tokens_that_expire_now_and_never", "token_times_at_the_edges", "token_expiry_on_the_server"],
    ["row_57", "row_57_signed"])
row(58, "MC", "a payload queued just before a disconnect", "d",
    ["queued_payloads_outlive_the_client", "queued_payloads_outlive_many_sessions_in_other_slots"],
    ["row_58"])

# ---- what a hostile reading of the first version found ----

row(59, "MC", "ordered messages: order 0 left out, 1 to 1023 filled, then the last of them for ever", "d",
    ["threat_59_no_order_costs_more_than_honest_ones", "threat_59_a_taken_order_is_refused_before_anything_is_stored"],
    ["row_59", "row_59_stored"])
row(60, "MC", "one connected client floods a server that ticks at 20 or 60 Hz", "d",
    ["threat_60_the_others_are_heard_beside_a_client_that_floods", "threat_60_a_client_that_floods_is_throttled",
     "drop_OVER_SHARE"],
    ["row_60", "row_60_system"], ["make fairness"])
row(61, "OFF", "junk requests at 13 to 170 Mbit/s, 1, 2 and 4 private keys", "d",
    ["threat_61_the_players_are_heard_beside_junk_requests", "threat_61_forged_responses_cost_one_handshake_only",
     "threat_61_unknown_addresses_that_flood_are_filtered", "drop_REQUEST_NOT_OPENED",
     "decision_6_one_update_spends_its_budget_and_returns"],
    ["row_61", "row_61_scale", "row_61_responses", "row_61_system"], ["make fairness"])
row(62, "OFF", "one forged ICMP: fragmentation needed, 552 bytes", "r",
    ["linux_forged_icmp_fragments_nothing", "linux_sends_past_a_closed_port"],
    ["row_62", "row_62_pending", "row_62_counted"])
row(63, "REC", "the victim's request repeated while it connects, 60 to 300 times a second", "d",
    ["threat_63_the_victims_request_is_repeated_while_it_connects",
     "threat_63_copies_from_other_addresses_while_the_victim_connects"],
    ["row_63", "row_63_addresses"])
row(64, "MC", "one account connects and leaves 512 times with tokens of 120 s; others have tokens of 45 s", "d",
    ["threat_64_one_accounts_used_tokens_keep_no_other_out", "threat_64_a_share_that_fills_while_a_handshake_is_pending",
     "threat_64_shares_survive_a_start_with_other_slots", "table_used_shares_of_client_ids_against_a_model"],
    ["row_64", "row_64_mark", "row_64_heap", "row_64_adopt"])
row(65, "ENV", "the process is forked, or a snapshot of the machine is resumed twice, after the start", "d",
    ["threat_65_two_copies_of_a_server_share_no_nonce", "decision_1_the_servers_global_sequence_is_random_in_the_upper_half"],
    ["row_65_base", "row_65_challenge", "row_65_answer"])
row(66, "MC", "acknowledgements for packets that never arrived", "d",
    ["threat_66_acks_for_what_never_arrived", "threat_66_a_skipped_number_breaks", "threat_66_skipped_numbers_are_no_losses",
     "threat_66_skips_can_not_be_foreseen", "messages_acks_measure"],
    ["row_66", "row_66_never", "row_66_foreseen", "row_66_ranges", "row_66_losses", "row_66_delay"])
row(67, "ENV", "a private key of zeros, which was never set", "d",
    ["threat_67_a_private_key_of_zeros"],
    ["row_67"])
row(68, "ENV", "every number of the configs, the simulator and the functions at its edges", "d",
    ["threat_68_numbers_at_the_edge_in_configs", "threat_68_numbers_at_the_edge_in_the_simulator",
     "threat_68_numbers_at_the_edge_in_arguments"],
    ["row_68"])
row(69, "ENV", "message buffers after reset and destroy", "d",
    ["threat_69_nothing_of_a_former_player_is_left"],
    ["row_69", "row_69_destroy", "row_69_events", "row_69_free"])
row(70, "MS", "a keep-alive that connects names an impossible slot", "d",
    ["threat_70_impossible_slots_connect"],
    ["row_70", "row_70_index"])
row(71, "ENV", "a slot times out after a step of the clock", "d",
    ["threat_71_a_slot_that_times_out_gets_no_packet"],
    ["row_71"])


# ---- paths: addresses that change ----

row(72, "OFF", "sequences are guessed, to become another client's address", "d",
    ["threat_72_guessed_sequences", "roaming_sequences_that_are_tried"],
    ["row_72"])
row(73, "REC", "packets are copied, faster than they are, from another address", "d",
    ["threat_73_a_faster_copy_moves_nothing", "roaming_echoes_that_count"],
    ["row_73", "row_73_elsewhere"])
row(74, "REC", "recorded packets, from anywhere, at any time later", "d",
    ["threat_74_recorded_packets_move_nothing"],
    ["row_74"])
row(75, "MC", "a victim's address as the source of one's own packets, with guessed echoes", "d",
    ["threat_75_a_victim_is_no_target"],
    ["row_75", "row_75_echo"])
row(76, "MC", "an address is taken over by a client that receives there", "d",
    ["threat_76_an_address_belongs_to_one_slot", "roaming_two_clients_swap", "roaming_slots_without_an_address_end"],
    ["row_76", "row_76_sends"])
row(77, "MC", "a client moves as often as it can", "d",
    ["threat_77_probes_are_ten_a_second", "roaming_candidates_are_three"],
    ["row_77"])
row(78, "REC", "junk with a client's sequences, so that it is not found when it moves", "d",
    ["threat_78_trials_are_rationed", "roaming_many_at_one_sequence"],
    ["row_78", "row_78_two"])
row(79, "REC", "authentic packets that were held back, older than the newest, from another address", "d",
    ["threat_79_older_packets_move_nothing", "threat_74_recorded_packets_move_nothing"],
    ["row_79"])
row(80, "MC", "a client leaves its address to another, sends from elsewhere and answers no probe", "d",
    ["threat_80_an_address_that_was_left", "threat_73_a_faster_copy_moves_nothing"],
    ["row_80", "row_80_echo"])
row(81, "MC REC", "one's own packets from where another client is heard, and the probes read there and returned", "d",
    ["threat_81_an_address_where_a_client_is_heard", "threat_81_an_address_where_a_client_connects"],
    ["row_81"])
row(82, "REC", "copies that are faster, so that a client believes that it is not heard", "d",
    ["threat_82_a_faster_copy_of_probes"],
    ["row_82"])

# ---- what outsiders found in version 1.1.0 ----

row(83, "OFF", "junk of every first byte and size from unknown addresses, 7 to 170 Mbit/s", "dr",
    ["threat_83_junk_of_any_kind_takes_nothing_from_players", "flood_the_kernel_filters_as_its_model"],
    ["row_83"], ["make fairness"])
row(84, "OFF", "junk from ports that are chosen to pass the filter, and from one IP address or /64 over many ports", "d",
    ["flood_bits_have_a_key", "flood_one_network_is_limited_as_one", "threat_83_junk_of_any_kind_takes_nothing_from_players"],
    ["row_84", "row_84_ports", "row_84_network"], ["make fairness"])
row(85, "OFF", "a trickle of junk at a server that filters", "d",
    ["flood_players_are_never_limited", "flood_a_full_buffer_is_noticed"],
    ["row_85", "row_85_moment"])
row(86, "OFF", "a client's address forged at 7 to 170 Mbit/s, its sequences unknown", "dr",
    ["threat_83_junk_of_any_kind_takes_nothing_from_players", "flood_the_kernel_filters_as_its_model"],
    ["row_86", "row_86_system"], ["make fairness"])
row(87, "OFF", "forged ICMP errors of every type and code, IPv4 and IPv6, 1,000 a second, to both sides", "r",
    ["threat_87_forged_icmp_errors", "hostile_52_a_socket_that_misbehaves", "linux_sends_past_a_closed_port",
     "linux_sendmmsg_that_is_refused"],
    ["row_87", "row_87_errors_alone", "socket_sendmmsg_pending_error"])
row(88, "MC", "acks of the first small messages are withheld, those of a transfer are given", "d",
    ["threat_88_acks_that_are_withheld"],
    ["row_88"])
row(89, "MC", "empty streams", "d",
    ["messages_guarantee_streams_are_accepted_at_a_limited_rate"],
    ["messages_stream_ration", "messages_stream_refusals_overflow"])
row(90, "OFF", "20,000 datagrams by process_packet between two updates: each is handled at once, as the manual says", "d",
    ["mutants_a_candidate_by_process_packet"],
    ["row_90"])
row(94, "ENV", "the API is called from inside every callback, the pool at its least, roaming on", "d",
    ["corners_a_pool_that_is_emptied_while_a_probe_leaves", "storm_every_function_from_every_callback"],
    ["paths_a_pool_that_is_emptied"], ["make fuzz"])
row(95, "ENV", "roaming: the port of a client that answers no probes changes, after many packets", "d",
    ["corners_how_long_a_client_may_be_elsewhere", "threat_80_an_address_that_was_left"],
    ["row_80"])
