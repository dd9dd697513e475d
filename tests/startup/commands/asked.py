"""What each option of generate, interactive, validate and score does, with ordinary and odd values.

A row has words, and behind two spaces what comes of them: ``obeyed`` where the output is another
than without the first of the words, else what the one sentence says. Where nothing changes, the
option stands in `WITHOUT_EFFECT` with the reason.
"""

import re

OBEYED = "obeyed"

# of all that translate
SEARCH = """
--path=nope                                          not found: nope
--beam=1                                             obeyed
--beam=0                                             --beam must be at least 1, got 0
--nbest=2                                            obeyed
--nbest=3 --beam=2                                   --nbest 3 must be between 1 and --beam, 2
--max-len-a=1 --max-len-b=0                          obeyed
--max-len-a=nan                                      --max-len-a is nan: it must be a finite number
--max-len-b=1                                        obeyed
--max-len-b=0                                        min_len cannot be larger than max_len
--min-len=5                                          obeyed
--min-len=-1                                         --min-len must be at least 0, got -1
--match-source-len                                   obeyed
--unnormalized                                       obeyed
--lenpen=0                                           obeyed
--lenpen=inf                                         --lenpen is inf: it must be a finite number
--unkpen=-100                                        obeyed
--unkpen=nan                                         --unkpen is nan: it must be a finite number
--no-repeat-ngram-size=1 --min-len=5                 obeyed
--no-repeat-ngram-size=-1                            --no-repeat-ngram-size must be at least 0
--sampling --nbest=5                                 obeyed
--sampling                                           --sampling requires --nbest to be equal
--sampling-topk=1 --sampling --nbest=5               obeyed
--sampling-topk=2                                    --sampling-topk requires --sampling
--sampling-topp=0.1 --sampling --nbest=5             obeyed
--sampling-topp=0.5                                  --sampling-topp requires --sampling
--seed=2 --sampling --nbest=5                        obeyed
--seed=-1                                            --seed must be at least 0, got -1
--temperature=5                                      obeyed
--temperature=0                                      --temperature must be greater than 0
--diverse-beam-groups=5                              obeyed
--diverse-beam-groups=2 --beam=3                     2 do not divide --beam 3
--diverse-beam-strength=2 --diverse-beam-groups=5    obeyed
--diverse-beam-strength=nan                          --diverse-beam-strength is nan
--diversity-rate=0.5                                 obeyed
--diversity-rate=nan                                 --diversity-rate is nan
--print-alignment=hard                               obeyed
--print-alignment=nope                               invalid choice: 'nope'
--print-step                                         is for models that translate in several passes
--retain-iter-history                                is for models that translate in several passes
--decoding-format=vote                               is for models that translate in several passes
--iter-decode-eos-penalty=1                          is for models that translate in several passes
--iter-decode-max-iter=2                             is for models that translate in several passes
--iter-decode-force-max-iter                         is for models that translate in several passes
--iter-decode-with-beam=2                            is for models that translate in several passes
--iter-decode-with-external-reranker                 is for models that translate in several passes
--retain-dropout                                     obeyed
--retain-dropout-modules=nope --retain-dropout       obeyed
--remove-bpe=sentencepiece                           obeyed
--remove-bpe=nope                                    Unknown post_process option: nope
--model-overrides={'no_scale_embedding':True}        obeyed
--model-overrides=nope                               the option 'nope' is refused
--model-overrides=3                                  --model-overrides 3 is none
--checkpoint-suffix=nope                             not found: ck/checkpoint_lastnope.pt
--checkpoint-shard-count=2                           not found: ck/checkpoint_last_part0.pt
--bpe=characters                                     Could not load bpe/characters
--bpe=byte_bpe                                       --sentencepiece-model-path is missing
--bpe=sentencepiece                                  --sentencepiece-model is missing
--sentencepiece-model=nope --bpe=sentencepiece       file nope not found
--tokenizer=moses                                    --source-lang is missing
--tokenizer=nope                                     invalid choice: 'nope'
--user-dir=nope                                      --user-dir nope does not exist
--user-dir=test.en                                   --user-dir test.en is a file
--task=nope                                          invalid choice: 'nope'
--source-lang=de                                     name both languages, or none
--target-lang=en                                     name both languages, or none
--source-lang=de --target-lang=en                    obeyed
--fp16                                               --fp16 needs a GPU
--memory-efficient-fp16                              --fp16 needs a GPU
--optimizer=nag                                      does nothing where nothing is trained
--lr-scheduler=cosine                                does nothing where nothing is trained
--criterion=ctc                                      does nothing where nothing is trained
"""
ROWS = {
    "generate": SEARCH
    + """
--left-pad-source                                    obeyed
--truncate-source --max-source-positions=3           obeyed
--task=denoising                                     conflicting option string
--task=translation_lev                               --task translation_lev cannot be used
--task=online_backtranslation                        cannot be used with what else
--quiet                                              obeyed
--gen-subset=valid                                   obeyed
--gen-subset=nope                                    has no set 'nope'
--results-path=results                               obeyed
--results-path=test.de                               test.de: File exists
--score-reference                                    obeyed
--prefix-size=2                                      obeyed
--prefix-size=-1                                     --prefix-size must be at least 0, got -1
--max-tokens=20                                      obeyed
--max-tokens=1                                       should not exceed max_tokens=1
--max-tokens=0                                       --max-tokens must be at least 1, got 0
--max-sentences=1                                    obeyed
--max-sentences=-1                                   --batch-size must be at least 1, got -1
--required-batch-size-multiple=1                     obeyed
--required-batch-size-multiple=0                     must be at least 1, got 0
--required-seq-len-multiple=4                        obeyed
--required-seq-len-multiple=0                        must be at least 1, got 0
--max-source-positions=3                             skip-invalid-size-inputs-valid-test
--max-target-positions=3                             skip-invalid-size-inputs-valid-test
--skip-invalid-size-inputs-valid-test --max-source-positions=3  obeyed
--num-batch-buckets=2                                Must specify --max-tokens
--dataset-impl=lazy                                  was written with --dataset-impl mmap
--dataset-impl=fasta                                 was written with --dataset-impl mmap
--num-shards=2                                       obeyed
--num-shards=0                                       --num-shards must be at least 1, got 0
--num-shards=3 --shard-id=2                          shard 2 of 3 is empty
--shard-id=1 --num-shards=2 --max-sentences=4        obeyed
--shard-id=2 --num-shards=2                          --shard-id 2 must be from 0 to
--distributed-world-size=0                           must be at least 1, got 0
--constraints                                        --constraints are read by fairseq-interactive
--sacrebleu                                          use --scoring sacrebleu
--print-alignment=soft                               obeyed
--replace-unk                                        requires a raw text dataset
--lm-path=nope                                       not found: nope
--lm-path=ck/checkpoint_last.pt                      it must be a language model
--scoring=chrf                                       obeyed
--scoring=nope                                       invalid choice: 'nope'
--scoring=sacrebleu                                  obeyed
--sacrebleu-tokenizer=nope --scoring=sacrebleu       invalid choice: 'nope'
--sacrebleu-char-level --scoring=sacrebleu           obeyed
--sentencepiece-model=m --bpe=sentencepiece --remove-bpe=sentencepiece  leave one out
--num-workers=-1                                     --num-workers must be at least 0, got -1
--log-interval=0                                     --log-interval must be at least 1, got 0
""",
    "interactive": SEARCH
    + """
--buffer-size=3 --max-sentences=3                    obeyed
--buffer-size=-1                                     --buffer-size must be at least 0, got -1
--max-sentences=2                                    --batch-size cannot be larger than
--input=test.en                                      obeyed
--input=nope                                         nope: No such file or directory
--constraints=ordered                                obeyed
--constraints=nope                                   invalid choice: 'nope'
--replace-unk=nope                                   nope: No such file or directory
--max-tokens=1                                       should not exceed max_tokens=1
--print-alignment=soft                               prints hard alignments alone
--num-shards=2                                       does nothing in fairseq-interactive
--shard-id=1                                         does nothing in fairseq-interactive
--gen-subset=valid                                   does nothing in fairseq-interactive
--results-path=results                               does nothing in fairseq-interactive
--quiet                                              does nothing in fairseq-interactive
--score-reference                                    does nothing in fairseq-interactive
--prefix-size=2                                      does nothing in fairseq-interactive
--lm-path=nope                                       does nothing in fairseq-interactive
--lm-weight=1                                        does nothing in fairseq-interactive
--sacrebleu                                          does nothing in fairseq-interactive
--required-batch-size-multiple=2                     does nothing in fairseq-interactive
--max-source-positions=2                             is left out: it has
--distributed-init-method=nope                       starts a process for each GPU
--pipeline-model-parallel                            pipeline
""",
    "validate": """
--path=nope                                          not found: nope
--valid-subset=test                                  obeyed
--valid-subset=nope                                  has no set 'nope'
--max-tokens=20 --log-interval=1                     obeyed
--max-tokens=0                                       --max-tokens must be at least 1, got 0
--max-sentences=1 --log-interval=1                   obeyed
--max-sentences=0                                    --batch-size must be at least 1, got 0
--log-interval=1 --max-sentences=1                   obeyed
--log-interval=0                                     --log-interval must be at least 1, got 0
--log-format=json                                    obeyed
--log-format=nope                                    invalid choice: 'nope'
--seed=-1                                            --seed must be at least 0, got -1
--num-workers=-1                                     --num-workers must be at least 0, got -1
--required-batch-size-multiple=0                     must be at least 1, got 0
--criterion=label_smoothed_cross_entropy             obeyed
--criterion=nope                                     invalid choice: 'nope'
--task=nope                                          invalid choice: 'nope'
--task=language_modeling                             bin/dict.txt does not exist
--model-overrides={'no_scale_embedding':True}        obeyed
--model-overrides=nope                               the option 'nope' is refused
--dataset-impl=lazy                                  was written with --dataset-impl mmap
--source-lang=de                                     name both languages, or none
--target-lang=en                                     name both languages, or none
--max-source-positions=3                             skip-invalid-size-inputs-valid-test
--skip-invalid-size-inputs-valid-test --max-source-positions=3  obeyed
--distributed-world-size=0                           must be at least 1, got 0
--disable-validation                                 does nothing in fairseq-validate
--combine-val                                        does nothing in fairseq-validate
--nval=1                                             does nothing in fairseq-validate
--max-tokens-valid=9                                 does nothing in fairseq-validate
--max-sentences-valid=9                              does nothing in fairseq-validate
--gen-subset=test                                    does nothing in fairseq-validate
--num-shards=2                                       does nothing in fairseq-validate
--shard-id=1                                         does nothing in fairseq-validate
--remove-bpe                                         does nothing in fairseq-validate
--quiet                                              does nothing in fairseq-validate
--results-path=results                               does nothing in fairseq-validate
--required-seq-len-multiple=4                        does nothing in fairseq-validate
--user-dir=nope                                      --user-dir nope does not exist
--fp16                                               --fp16 needs a GPU
--memory-efficient-fp16                              --fp16 needs a GPU
--eval-bleu-print-samples                            obeyed
--eval-bleu-args={"beam":3}                          obeyed
--eval-bleu-args=nope                                --eval-bleu-args nope is none
--eval-bleu-detok=nope                               nope
--eval-bleu-detok-args=3                             --eval-bleu-detok-args 3 is none
--eval-bleu-remove-bpe=nope                          nope
--num-batch-buckets=2                                Must specify --max-tokens
--truncate-source --max-source-positions=3           obeyed
--max-target-positions=3                             skip-invalid-size-inputs-valid-test
--distributed-init-method=nope                       starts a process for each GPU
--pipeline-model-parallel                            pipeline
--tokenizer=moses                                    --source-lang is missing
--optimizer=nag                                      does nothing where nothing is trained
--lr-scheduler=step                                  does nothing where nothing is trained
""",
    "train": """
--arch=transformer_tinny                             is not one of the
--arch=transformer_iwslt_de_en                       obeyed
--arch=lstm_lm                                       --arch lstm_lm cannot be used with
--arch=levenshtein_transformer                       --arch levenshtein_transformer cannot be used
--task=nope                                          invalid choice: 'nope'
--criterion=label_smoothed_cross_entropy             obeyed
--criterion=nope                                     invalid choice: 'nope'
--criterion=masked_lm                                --criterion masked_lm cannot be used with
--criterion=ctc                                      --criterion ctc cannot be used with
--label-smoothing=0.5 --criterion=label_smoothed_cross_entropy  obeyed
--label-smoothing=2 --criterion=label_smoothed_cross_entropy    must be at most 1, got 2
--optimizer=nag                                      obeyed
--optimizer=nope                                     invalid choice: 'nope'
--adam-betas=(0.5,0.5)                               obeyed
--adam-betas=nope                                    the option 'nope' is refused
--adam-eps=0.1                                       obeyed
--adam-eps=nan                                       --adam-eps is nan
--bf16                                               obeyed
--distributed-init-method=nope                       starts a process for each GPU
--lr=0.1                                             obeyed
--lr=-1                                              --lr must be at least 0, got -1
--lr=nope                                            the option 'nope' is refused
--lr-scheduler=inverse_sqrt                          obeyed
--lr-scheduler=nope                                  invalid choice: 'nope'
--lr-scheduler=triangular                            --max-lr is missing
--num-shards=2                                       does nothing in fairseq-train
--shard-id=1                                         does nothing in fairseq-train
--gen-subset=valid                                   does nothing in fairseq-train
--warmup-updates=9 --lr-scheduler=inverse_sqrt       obeyed
--warmup-updates=-1 --lr-scheduler=inverse_sqrt      --warmup-updates must be at least 0, got -1
--clip-norm=0.1                                      obeyed
--clip-norm=nan                                      --clip-norm is nan
--update-freq=2                                      obeyed
--update-freq=0                                      --update-freq must be at least 1, got 0
--batch-size=4                                       obeyed
--batch-size=0                                       --batch-size must be at least 1, got 0
--max-tokens=50                                      obeyed
--max-tokens=1                                       The dataset is empty
--max-update=1                                       obeyed
--max-update=-1                                      --max-update must be at least 0, got -1
--seed=3                                             obeyed
--seed=-1                                            --seed must be at least 0, got -1
--dropout=0.9                                        obeyed
--dropout=2                                          --dropout must be at most 1, got 2
--attention-dropout=0.9                              obeyed
--attention-dropout=-1                               --attention-dropout must be at least 0
--encoder-layers=3                                   obeyed
--encoder-layers=0                                   --encoder-layers must be at least 1, got 0
--decoder-layers=3                                   obeyed
--decoder-layers=-1                                  --decoder-layers must be at least 1, got -1
--encoder-attention-heads=1                          obeyed
--encoder-attention-heads=3                          must be divisible by num_heads
--decoder-attention-heads=1                          obeyed
--decoder-attention-heads=0                          must be at least 1, got 0
--encoder-ffn-embed-dim=8                            obeyed
--encoder-ffn-embed-dim=0                            must be at least 1, got 0
--decoder-ffn-embed-dim=8                            obeyed
--decoder-ffn-embed-dim=0                            must be at least 1, got 0
--encoder-embed-dim=32                               obeyed
--encoder-embed-dim=0                                must be at least 1, got 0
--decoder-embed-dim=0                                must be at least 1, got 0
--encoder-normalize-before                           obeyed
--decoder-normalize-before                           obeyed
--no-scale-embedding                                 obeyed
--share-decoder-input-output-embed                   obeyed
--share-all-embeddings                               requires a joined dictionary
--valid-subset=test                                  obeyed
--valid-subset=nope                                  has no set 'nope'
--validate-interval=0                                --validate-interval must be at least 1, got 0
--disable-validation                                 obeyed
--best-checkpoint-metric=bleu                        needs --eval-bleu
--eval-bleu                                          obeyed
--eval-bleu-args={"beam":1,"max_len_b":1} --eval-bleu  obeyed
--eval-bleu-args=nope                                --eval-bleu-args nope is none
--eval-bleu-detok=nope --eval-bleu                   --eval-bleu-detok nope is not known
--save-interval-updates=-1                           must be at least 0, got -1
--num-workers=-1                                     --num-workers must be at least 0, got -1
--log-format=json                                    obeyed
--log-format=nope                                    invalid choice: 'nope'
--log-interval=9                                     obeyed
--log-interval=0                                     --log-interval must be at least 1, got 0
--source-lang=de                                     name both languages, or none
--target-lang=en                                     name both languages, or none
--user-dir=nope                                      --user-dir nope does not exist
--fp16                                               --fp16 needs a GPU
""",
    "preprocess": """
--source-lang=nope                                   train.nope does not exist
--target-lang=nope                                   train.nope does not exist
--trainpref=nope                                     nope.en does not exist
--trainpref=valid                                    obeyed
--validpref=nope                                     nope.en does not exist
--validpref=test                                     obeyed
--testpref=nope                                      nope.en does not exist
--testpref=test                                      obeyed
--destdir=train.en                                   'train.en' is there already
--destdir=other                                      obeyed
--align-suffix=nope                                  train.nope does not exist
--alignfile=nope                                     nope: No such file or directory
--thresholdsrc=20                                    obeyed
--thresholdsrc=-1                                    --thresholdsrc must be at least 0, got -1
--thresholdtgt=20                                    obeyed
--thresholdtgt=-1                                    --thresholdtgt must be at least 0, got -1
--nwordssrc=8                                        obeyed
--nwordssrc=-2                                       --nwordssrc must be at least -1, got -2
--nwordstgt=8                                        obeyed
--nwordstgt=-2                                       --nwordstgt must be at least -1, got -2
--srcdict=bin/dict.de.txt                            obeyed
--srcdict=nope                                       nope does not exist
--srcdict=train.en                                   train.en is no dictionary of fairseq
--tgtdict=bin/dict.en.txt                            obeyed
--tgtdict=nope                                       nope does not exist
--joined-dictionary                                  obeyed
--joined-dictionary --srcdict=bin/dict.de.txt --tgtdict=bin/dict.de.txt  cannot use both
--only-source                                        obeyed
--dict-only                                          obeyed
--padding-factor=32                                  obeyed
--padding-factor=-1                                  must be at least 0, got -1
--workers=0                                          --workers must be at least 1, got 0
--dataset-impl=lazy                                  obeyed
--dataset-impl=nope                                  invalid choice: 'nope'
--task=nope                                          invalid choice: 'nope'
--user-dir=nope                                      --user-dir nope does not exist
--seed=-1                                            --seed must be at least 0, got -1
--log-interval=0                                     --log-interval must be at least 1, got 0
""",
    "score": """
--sys=nope                                           System output file nope does not exist
--sys=train.de                                       has 60 lines and test.de has 12
--ref=nope                                           Reference file nope does not exist
--ref=test.en                                        obeyed
--order=2                                            obeyed
--order=0                                            --order must be at least 1, got 0
--order=5                                            order > 4 aren't supported
--ignore-case --ref=lower.de                         obeyed
--ignore-case --sacrebleu                            does nothing with --sacrebleu
--sacrebleu                                          obeyed
--sacrebleu --order=2                                --order does nothing with --sacrebleu
--sentence-bleu                                      obeyed
--sentence-bleu --sacrebleu                          --sentence-bleu does nothing with --sacrebleu
""",
}

WITHOUT_EFFECT = {
    "it says what is logged, and where": """
--no-progress-bar --log-interval --log-format --log-file --aim-repo --aim-run-hash --reset-logging
--tensorboard-logdir --wandb-project --azureml-logging --profile --suppress-crashes""",
    "it says how numbers are computed, on which device, and by how many processes": """
--cpu --tpu --bf16 --memory-efficient-bf16 --amp --on-cpu-convert-precision --num-workers
--data-buffer-size --use-plasma-view --plasma-path --empty-cache-freq --all-gather-list-size
--model-parallel-size --distributed-world-size=1 --distributed-num-procs=1 --distributed-rank=0
--distributed-backend --distributed-init-method --distributed-port --local_rank
--distributed-no-spawn --ddp-backend --ddp-comm-hook --bucket-cap-mb --fix-batches-to-gpus
--find-unused-parameters --gradient-as-bucket-view --fast-stat-sync --heartbeat-timeout
--broadcast-buffers --slowmo-momentum --slowmo-base-algorithm --localsgd-frequency
--nprocs-per-node --pipeline-model-parallel --pipeline-balance=[1] --pipeline-devices=[1]
--pipeline-chunks --pipeline-encoder-balance=[1] --pipeline-encoder-devices=[1]
--pipeline-decoder-balance=[1] --pipeline-decoder-devices=[1] --pipeline-checkpoint --zero-sharding
--no-reshard-after-forward --fp32-reduce-scatter --cpu-offload --use-sharded-state
--not-fsdp-flatten-parameters --required-batch-size-multiple --no-beamable-mm
--load-checkpoint-on-all-dp-ranks""",
    "a training alone has a use for it, and its parser is shared": """
--fp16-no-flatten-grads --fp16-init-scale --fp16-scale-window --fp16-scale-tolerance
--min-loss-scale --threshold-loss-scale --amp-batch-retries --amp-init-scale --amp-scale-window
--quantization-config-path --train-subset --valid-subset
--combine-val --ignore-unused-valid-subsets --validate-interval --validate-interval-updates
--validate-after-updates --fixed-validation-seed --disable-validation --max-tokens-valid=9
--max-sentences-valid=9 --nval --curriculum --grouped-shuffling --update-epoch-batch-itr=True
--update-ordered-indices-seed --save-dir --restore-file --continue-once --finetune-from-model
--reset-dataloader --reset-lr-scheduler --reset-meters --reset-optimizer --optimizer-overrides
--save-interval --save-interval-updates --keep-interval-updates --keep-interval-updates-pattern
--keep-last-epochs --keep-best-checkpoints --no-save --no-epoch-checkpoints
--no-last-checkpoints --no-save-optimizer-state --best-checkpoint-metric
--maximize-best-checkpoint-metric --patience --save-async --load-alignments
--upsample-primary --eval-bleu --eval-bleu-args={} --eval-bleu-detok=space
--eval-bleu-detok-args={} --eval-tokenized-bleu --eval-bleu-remove-bpe=sentencepiece
--eval-bleu-print-samples --left-pad-target
--force-anneal --lr-shrink --warmup-updates --lr""",
    "no model reads the text that is prepared": "--fp16 --memory-efficient-fp16 --criterion "
    "--optimizer=adam --lr-scheduler=fixed",
    "figures stay the same, or a search obeys": "--left-pad-source --truncate-source",
    "fairseq sets it itself, by whether there is a --seed": "--no-seed-provided",
    "it ends a search that cannot be mended sooner or later": "--no-early-stop",
    "tasks of many languages alone have a use for it": "--eos-token",
    "with --lm-path alone": "--lm-weight",
    "nothing is scored, or put together from subwords": "--scoring --pad --eos --unk --bpe=bert "
    "--tokenizer=space",
    "what --bpe, --tokenizer or --scoring names has it, and obeys": "--sacrebleu-tokenizer "
    "--sacrebleu-lowercase --sacrebleu-char-level --sentencepiece-model "
    "--sentencepiece-enable-sampling --sentencepiece-alpha --moses-no-dash-splits "
    "--moses-no-escape",
    "nothing but lines that are typed is read": "--dataset-impl --num-batch-buckets "
    "--required-seq-len-multiple --skip-invalid-size-inputs-valid-test --max-target-positions",
}
"""Options that change nothing of what is found, by the reason; but where a row says another."""


OF_FILES = """
--save-dir --restore-file --keep-best-checkpoints --keep-interval-updates --keep-last-epochs
--patience
--maximize-best-checkpoint-metric --no-epoch-checkpoints --cpu --amp --ddp-backend
--distributed-backend --tensorboard-logdir --wandb-project --scoring --bpe
--tokenizer --eval-bleu-remove-bpe --profile -h"""
"""Options of a training that the pages name and other tests are of, or that change no figures."""


def rows(command: str) -> list[tuple[str, str]]:
    """Words and what comes of them, of one command."""
    lines = filter(None, ROWS[command].splitlines())
    return [tuple(re.split(r"  +", line, maxsplit=1)) for line in lines]


def without_effect() -> list[str]:
    """Options of `WITHOUT_EFFECT`, some with a value."""
    return " ".join(WITHOUT_EFFECT.values()).split()


def flag(words: str) -> str:
    """The option that a row is of."""
    return words.split()[0].partition("=")[0]
