_base_ = ['model.py', 'data.py', './schedule.py']
optim_wrapper = dict(
    type='AmpOptimWrapper',
    optimizer=dict(_delete_=True, type='AdamW', lr=0.0001, betas=(0.9, 0.98), weight_decay=0.05),
    paramwise_cfg=dict(custom_keys={'backbone': dict(lr_mult=0.1)}, norm_decay_mult=0.),
    clip_grad=dict(max_norm=35, norm_type=2))
_base_.param_scheduler[1].milestones = [10, 11]
metainfo = {'classes': ('person', 'bicycle')}
train_dataloader = dict(dataset=dict(dataset=dict(metainfo=metainfo)))
unused_pipeline = [dict(type='PackDetInputs')]
